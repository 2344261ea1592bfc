"""The live page: runs and sweeps as they happen, on localhost."""
