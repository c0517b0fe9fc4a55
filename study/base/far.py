"""How far a run must be from its siblings to be set aside, declared once, before any run.

The launcher marks such a run at once, and the analysis decides (``study.analysis.stats.far_runs``).
"""

DEVIATIONS = 5.0
"""Robust standard deviations of the logarithm of the time."""
FACTOR = 1.33
"""What a pause of the machine adds to a run is seldom less, and what noise adds is seldom more."""
TO_DEVIATION = 1.4826
"""Standard deviation over the median absolute deviation of Gaussian noise."""
