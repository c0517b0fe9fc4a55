"""What the timings say, and what they do not. Values in, values out."""
