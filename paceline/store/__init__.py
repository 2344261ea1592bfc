"""A run's folder: writing, reading, listing."""
