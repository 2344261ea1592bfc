"""One file a verb. Nothing here imports torch: help and wrong requests answer at once."""
