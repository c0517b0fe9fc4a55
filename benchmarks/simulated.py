"""Simulated studies under the noise that real machines make: planted truths, fresh seeds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from study.analysis.stats.mixed_model import Array, Codes
from study.host.plan.make import orders_of

SLOWED, COLD = (1.5, 2.0), (1.3, 2.0)
"""Factor by which a disturbed run is slower, and by which the first run of a start is."""
SECONDS = 10.0
MODE_SHARE = 0.4
"""Share of the runs of the last level that meet its slower mode."""


@dataclass(frozen=True)
class Condition:
    """What the machine does; all shares are of log seconds."""

    name: str
    settings: int = 4
    starts: int = 1
    blocks: int = 5
    """Blocks of each start."""
    noise: float = 0.03
    block_noise: float = 0.03
    start_noise: float = 0.05
    slowed: float = 0.0
    """Share of runs that are slowed."""
    broken: bool = False
    """Whether the session is broken at random into 3 to 5 starts, which leave blocks of one run."""
    first_slow: bool = False
    """Whether the first run of each start is slowed; there is no warm-up run."""
    heavy: bool = False
    """Whether the noise is Student's, of 3 degrees."""
    memory: float = 0.0
    """Correlation of the noise of a run with that of the one before."""
    drift: float = 0.0
    """Drift from the first to the last run."""
    slope: float = 1.0
    """Factor from the first to the last run of each block."""
    grows: bool = False
    """Whether the noise grows with the level's time, from 0.4 to 2.4 times."""
    uneven: bool = False
    """Whether the last level is four times as noisy as the others."""
    mode: float = 1.0
    """Factor of the slower mode of the last level."""
    shift: float = 0.0
    """Standard deviation of what a start shifts in each level by itself."""
    pair: bool = False
    """Whether a start shifts the last two levels as one, and no other."""
    step: float = 0.0
    """Seconds between two times that the clock can show."""

    @property
    def runs(self) -> int:
        """Runs of a level."""
        return self.starts * self.blocks


OLD = (
    Condition("old: Gaussian noise, whole blocks"),
    Condition("old: 5% slowed", slowed=0.05),
    Condition("old: 10% slowed", slowed=0.10),
    Condition("old: first slow, broken sessions", broken=True, first_slow=True),
    Condition("old: broken sessions", broken=True),
    Condition("old: t noise", heavy=True),
    Condition("old: 20% drift", drift=0.2),
    Condition("old: noise that grows with the level", grows=True),
    Condition("old: 20% block noise", block_noise=0.2),
    Condition("old: 3 replicates", blocks=3),
    Condition("old: 3 replicates, 5% slowed", blocks=3, slowed=0.05),
    Condition("old: broken, 5% slowed, 20% block noise", broken=True, slowed=0.05, block_noise=0.2),
    Condition(
        "old: broken, first slow, t noise, drift",
        broken=True,
        first_slow=True,
        heavy=True,
        drift=0.2,
    ),
)
"""With five levels, and noise, blocks and starts of 5%."""
NEW = (
    Condition("clean"),
    Condition("5% slowed", slowed=0.05),
    Condition("10% slowed", slowed=0.10),
    Condition("first slow, no primer", first_slow=True),
    Condition("t noise", heavy=True),
    Condition("AR(1) 0.6", memory=0.6),
    Condition("AR(1) 0.9", memory=0.9),
    Condition("20% drift", drift=0.2),
    Condition("twofold slope within blocks", slope=2.0),
    Condition("twofold slope, two alternating", settings=2, slope=2.0),
    Condition("one level four times as noisy", uneven=True),
    Condition("modes 1.2 apart", mode=1.2),
    Condition("modes 1.55 apart", mode=1.55),
    Condition("clock of whole seconds", step=1.0, noise=0.003, block_noise=0.003),
)


def conditions() -> list[Condition]:
    """Return the old conditions, and the new ones in 3, 5 and 10 blocks."""
    old = [
        replace(
            one, settings=5, noise=0.05, block_noise=max(one.block_noise, 0.05), start_noise=0.05
        )
        for one in OLD
    ]
    return [
        replace(one, name=f"{one.name}, {n} blocks", blocks=n)
        for n, one in product((3, 5, 10), NEW)
    ] + old


def of_starts() -> list[Condition]:
    """Return studies of several starts that shift levels: none, each by 6%, or two as one by 3 and
    6%."""
    found = []
    for starts, blocks in ((1, 5), (2, 5), (3, 3), (3, 5), (3, 10), (5, 3)):
        for kind, shift in (
            ("no shift", 0.0),
            ("each 6%", 0.06),
            ("two 3%", 0.03),
            ("two 6%", 0.06),
        ):
            pair, name = kind.startswith("two"), f"{starts} starts x {blocks} blocks, {kind}"
            found.append(
                Condition(
                    name,
                    settings=5,
                    starts=starts,
                    blocks=blocks,
                    noise=0.02,
                    shift=shift,
                    pair=pair,
                )
            )
    return found


@dataclass(frozen=True)
class Runs:
    """The runs of one study in the order of execution; every array is (n,)."""

    seconds: Array
    levels: Codes
    blocks: Codes
    starts: Codes
    truth: Array
    """Log seconds of each level (m,), over all that its runs meet; of one or two starts those of
    these starts."""
    met: bool
    """Whether both modes were met, or there is one."""


def simulate(
    condition: Condition, effects: Sequence[float] | Array, rng: np.random.Generator
) -> Runs:
    """Return one study whose levels have the log times ``effects`` (m,) beyond ten seconds."""
    truth, count = np.log(SECONDS) + np.asarray(effects, float), condition.settings
    levels = np.concatenate([*orders_of([condition.runs] * count, int(rng.integers(2**32)))])
    n, place = len(levels), np.tile(np.arange(count) / max(count - 1, 1) - 0.5, condition.runs)
    starts = np.arange(n) // (condition.blocks * count)
    if condition.broken:
        cuts = np.sort(rng.choice(np.arange(1, n), rng.integers(2, 5), replace=False))
        starts = np.searchsorted(cuts, np.arange(n), side="right")
    blocks = starts * condition.runs + np.arange(n) // count
    first = np.concatenate([[True], starts[1:] != starts[:-1]])
    if condition.step:  # where the times lie between two steps is nobody's choice
        truth = truth + rng.uniform(-0.05, 0.05)
    logs = truth[levels] + condition.noise * _noise(condition, levels, truth, rng)
    logs += rng.normal(0, condition.block_noise, blocks.max() + 1)[blocks]
    logs += rng.normal(0, condition.start_noise, starts.max() + 1)[starts] * (starts.max() > 0)
    logs += (
        np.log1p(condition.drift) * (np.arange(n) / (n - 1) - 0.5) + np.log(condition.slope) * place
    )
    shifts = _shifts(condition, int(starts.max()) + 1, rng)
    logs += shifts[starts, levels]
    if len(shifts) < 3:
        truth = truth + shifts.mean(0)
    met = True
    if condition.mode > 1:
        slow = (levels == count - 1) & (rng.random(n) < MODE_SHARE)
        logs[slow] += np.log(condition.mode)
        truth = truth + MODE_SHARE * np.log(condition.mode) * (np.arange(count) == count - 1)
        met = 0 < slow.sum() < condition.runs
    slow = rng.random(n) < condition.slowed
    logs[slow] += np.log(rng.uniform(*SLOWED, int(slow.sum())))
    logs[first] += condition.first_slow * np.log(rng.uniform(*COLD, int(first.sum())))
    seconds = np.exp(logs)
    if condition.step:
        seconds = np.round(seconds / condition.step) * condition.step
    return Runs(seconds, levels, blocks, starts, truth, met)


def _noise(condition: Condition, levels: Codes, truth: Array, rng: np.random.Generator) -> Array:
    """Return noise (n,) of standard deviation 1, but where the levels have spreads of their own."""
    n, count = len(levels), condition.settings
    noise = rng.standard_t(3, n) / np.sqrt(3) if condition.heavy else rng.normal(0, 1, n)
    for run in range(1, n if condition.memory else 1):
        noise[run] = (
            condition.memory * noise[run - 1] + np.sqrt(1 - condition.memory**2) * noise[run]
        )
    if condition.grows:
        noise *= np.geomspace(0.4, 2.4, count)[np.argsort(np.argsort(truth))][levels]
    if condition.uneven:  # the mean square over all levels stays
        noise *= np.append(np.full(count - 1, 2 / 3), 8 / 3)[levels]
    return noise


def _shifts(condition: Condition, starts: int, rng: np.random.Generator) -> Array:
    """Return by how much each start shifts each level (s, m)."""
    if condition.pair:
        last = np.arange(condition.settings) >= condition.settings - 2
        return rng.normal(0, condition.shift, (starts, 1)) * last
    return rng.normal(0, condition.shift, (starts, condition.settings))
