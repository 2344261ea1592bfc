"""The step loop, the flat replica and what surrounds them in a worker."""
