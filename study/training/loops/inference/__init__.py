"""A network that is trained, and then asked."""
