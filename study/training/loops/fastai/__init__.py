"""Stock fastai as the loop of a run."""

from study.base import plain_matplotlib

# fastai imports it
plain_matplotlib()
