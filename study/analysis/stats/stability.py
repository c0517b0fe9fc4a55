"""The drift of times along the order of execution."""

import numpy as np
import pandas as pd

from study.analysis.stats.findings import Drift
from study.analysis.stats.log_model import DIFFERENCE
from study.analysis.stats.usable import model_of

DRIFT_LIMIT = 0.05
"""A drift is reported from 5% over the study on: half of what pyperf calls an unstable spread (10%)."""


def drift_of(clean: pd.DataFrame, y: str) -> Drift | None:
    """Return the drift of one group's times along the order of execution; None where none shows.

    The place in the order is a covariate of the model of log seconds: random blocks and starts are no drift. It counts
    where its t test finds it.
    """
    if clean["started"].isna().any() or len(clean) < 2 * clean["level"].nunique() or len(clean) < 4:
        return None
    order = clean["started"].rank(method="first").to_numpy(float)
    along = np.exp((order - order.mean()) / (order.max() - order.min()))  # the model takes the logarithm
    model = model_of(clean, y, clean["level"].tolist(), along.tolist())
    change, p = float(np.exp(model.fit.beta[-1])), model.covariate_p
    shows = p is not None and p < DIFFERENCE and max(change, 1 / change) >= 1 + DRIFT_LIMIT
    return Drift(change=change, p=p) if shows and p is not None else None
