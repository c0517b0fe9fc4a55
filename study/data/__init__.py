"""Images: where they come from, which of them are used, how they reach the model."""
