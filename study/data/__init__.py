"""The data package: sources of images, and the choice and split of images."""
