"""Where samples come from: data sets, who gets which samples, prefetch."""
