"""Simulated studies under the noise that real machines make: planted truths, fresh seeds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.int64]
LEVELS = 5
SLOWED = (1.5, 2.0)
"""Factor by which a disturbed run is slower."""


@dataclass(frozen=True)
class Condition:
    """What the machine does; all shares are of log seconds."""

    name: str
    blocks: int = 5
    noise: float = 0.05
    block_noise: float = 0.05
    start_noise: float = 0.05
    slowed: float = 0.0
    """Share of runs that are slowed."""
    broken: bool = False
    """Whether the session is broken at random into 3 to 5 starts, which leave blocks of one run."""
    first_slow: bool = False
    """Whether the first run of each start is slowed; there is no warm-up run."""
    heavy: bool = False
    """Whether the noise is Student's, of 3 degrees."""
    drift: float = 0.0
    """Drift from the first to the last run."""
    grows: bool = False
    """Whether the noise grows with the level's time, from 0.4 to 2.4 times."""


CONDITIONS = (
    Condition("Gaussian noise, whole blocks"),
    Condition("5% of runs slowed", slowed=0.05),
    Condition("10% of runs slowed", slowed=0.10),
    Condition("first run of each start slowed, broken sessions", broken=True, first_slow=True),
    Condition("broken sessions", broken=True),
    Condition("t noise of 3 degrees", heavy=True),
    Condition("20% drift within a session", drift=0.2),
    Condition("noise that grows with the level", grows=True),
    Condition("20% block noise", block_noise=0.2),
    Condition("3 replicates", blocks=3),
    Condition("3 replicates, 5% slowed", blocks=3, slowed=0.05),
    Condition("broken, 5% slowed, 20% block noise", broken=True, slowed=0.05, block_noise=0.2),
    Condition("broken, first slowed, t noise, drift", broken=True, first_slow=True, heavy=True, drift=0.2),
)
APART = np.array([0.5, 0.3, 0.0, 0.2, 0.6])
"""Log times of levels that differ, the third the fastest."""
FLAT = np.zeros(LEVELS)


@dataclass(frozen=True)
class Runs:
    """The runs of one study in the order of execution; every array is (n,)."""

    seconds: Array
    levels: Places
    blocks: Places
    starts: Places
    first: NDArray[np.bool_]
    """Whether a run is the first of its start."""

    def keep(self, rows: NDArray[np.bool_]) -> "Runs":
        """Return some of the runs."""
        return Runs(self.seconds[rows], self.levels[rows], self.blocks[rows], self.starts[rows], self.first[rows])


def simulate(condition: Condition, effects: Array, rng: np.random.Generator) -> Runs:
    """Return one study whose levels have the log times ``effects`` (5,)."""
    levels = np.concatenate([rng.permutation(LEVELS) for _ in range(condition.blocks)])
    count = len(levels)
    starts = np.zeros(count, np.int64)
    if condition.broken:
        cuts = np.sort(rng.choice(np.arange(1, count), rng.integers(2, 5), replace=False))
        starts = np.searchsorted(cuts, np.arange(count), side="right")
    blocks = starts * condition.blocks + np.repeat(np.arange(condition.blocks), LEVELS)
    noise = rng.standard_t(3, count) / np.sqrt(3) if condition.heavy else rng.normal(0, 1, count)
    spread = np.geomspace(0.4, 2.4, LEVELS)[np.argsort(np.argsort(effects))] if condition.grows else np.ones(LEVELS)
    logs = effects[levels] + condition.noise * spread[levels] * noise
    logs += rng.normal(0, condition.block_noise, blocks.max() + 1)[blocks]
    if condition.broken:
        logs += rng.normal(0, condition.start_noise, starts.max() + 1)[starts]
    logs += np.log1p(condition.drift) * (np.arange(count) / (count - 1) - 0.5)
    first = np.concatenate([[True], starts[1:] != starts[:-1]])
    slow = rng.random(count) < condition.slowed
    slow |= first & condition.first_slow
    logs[slow] += np.log(rng.uniform(*SLOWED, int(slow.sum())))
    return Runs(np.exp(logs), levels, blocks, starts, first)
