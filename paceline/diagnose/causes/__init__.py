"""What can hold a run back: a function each, from the evidence and a share of the time."""
