"""Loops that are compiled by LLVM, once on a machine, where a run gains by them."""
