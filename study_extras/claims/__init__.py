"""Published claims, re-examined on the figures that were printed with them."""
