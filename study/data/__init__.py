"""The data package: sources of images, the choice and split of images, and loaders that bring them
to the model."""
