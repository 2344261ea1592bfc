"""Logistic regression on click-like rows: the same rows for Paceline and for its peers."""
