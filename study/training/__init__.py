"""The training side: what executes inside the image, and what a run's key is made of."""
