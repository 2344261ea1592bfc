"""Starts roles, watches them, and ends them."""
