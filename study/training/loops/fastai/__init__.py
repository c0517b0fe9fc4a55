"""Stock fastai as the loop of a run."""
