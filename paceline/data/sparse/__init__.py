"""Rows of which almost everything is zero: read from text, kept as shards, taken in batches."""
