"""Clocks, counters, warm-up and interval statistics."""
