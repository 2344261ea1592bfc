"""Side-by-side measurements. Each is a module: `python -m bench.exchange`."""
