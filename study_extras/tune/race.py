"""The race: settings are run in blocks, and the slower half is dropped, until one is left or the time is over.

This is successive halving (Jamieson and Talwalkar 2016). The gain is not judged by the race, whose winner was lucky,
too: it is measured in further blocks, in which the winner and the baseline alone run.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from study.base.errors import StudyError
from study_extras.tune.space import Levels, Space

Setting = int
"""The place of a setting among those that were tried; 0 is the baseline."""
FIRST = 3
"""Settings of the first block: the baseline, the study's own, and everything on."""
CONFIRMING = 3
"""Blocks that measure the gain."""
LEAST_SECONDS = 0.1
SHARE = 0.4
"""Share of the time that is left after the first block in which every other setting runs once."""


@dataclass(frozen=True)
class Standing:
    """What is known of one setting."""

    seconds: float
    """Its mean time."""
    learned: bool | None
    """None where it cannot be told yet."""
    tied: bool = True
    """Whether it cannot be told from the fastest."""


Measure = Callable[[Sequence[Levels], Mapping[Setting, int], float], Mapping[Setting, Standing]]
"""Runs each setting the given number of times in all, within some seconds, and returns what is known of those that
have a successful run."""


@dataclass
class Race:
    """A race under way. ``clock`` returns seconds."""

    space: Space
    measure: Measure
    clock: Callable[[], float]
    deadline: float
    tried: list[Levels] = field(default_factory=list)
    runs: dict[Setting, int] = field(default_factory=dict)
    seconds: dict[Setting, float] = field(default_factory=dict)
    """Mean training time of each setting that has a successful run."""
    overhead: float = 0.0
    """Seconds that a run took in the last block beyond its training, with its share of a start."""

    def run(self) -> tuple[Setting, int, Mapping[Setting, Standing]]:
        """Return the winner, the number of blocks before those that measure its gain, and the last standings.

        Raise :class:`StudyError` if no setting was trained, or none of them learned.
        """
        self.tried = [self.space.baseline, *self.space.others[: FIRST - 1]]
        standings = self._block(range(len(self.tried)))
        more = int(SHARE * self._left() / self._cost())
        if more > 0 and len(self.space.others) >= FIRST:
            self.tried += self.space.others[FIRST - 1 : FIRST - 1 + more]
            standings = self._block(range(len(self.tried)), again=False)
        racing = survivors(standings)
        while len(racing) > 1:
            block = [0, *(one for one in racing if one != 0)]
            if self._left() <= sum(map(self._cost, block)):
                break
            standings = self._block(block)
            racing = survivors({one: standing for one, standing in standings.items() if one in racing})
        winner, raced = racing[0], self.runs[0]
        if winner != 0:
            self.runs |= dict.fromkeys((0, winner), raced + CONFIRMING)
            standings = self._measure()
        return winner, raced, standings

    def _left(self) -> float:
        """Return the seconds until the blocks that measure the gain have to begin, with a run in hand."""
        pair = self._cost(0) + self._cost()
        return self.deadline - self.clock() - CONFIRMING * pair - self._cost(0)

    def _cost(self, setting: Setting | None = None) -> float:
        """Return the seconds that a run of a setting takes; of one without a successful run the mean of the others."""
        others = [seconds for one, seconds in self.seconds.items() if one != 0] or list(self.seconds.values()) or [0.0]
        trained = None if setting is None else self.seconds.get(setting)
        return max((fmean(others) if trained is None else trained) + self.overhead, LEAST_SECONDS)

    def _block(self, settings: Sequence[Setting], again: bool = True) -> Mapping[Setting, Standing]:
        """Run each setting once more, or those alone that have not run yet."""
        counts = {one: self.runs.get(one, 0) + 1 if again else max(self.runs.get(one, 0), 1) for one in settings}
        before = {one: self.runs.get(one, 0) for one in settings}
        made = sum(counts.values()) - sum(before.values())
        self.runs |= counts
        began = self.clock()
        standings = self._measure()
        self.seconds |= {one: standing.seconds for one, standing in standings.items()}
        trained = sum(self.seconds.get(one, 0.0) * (count - before[one]) for one, count in counts.items())
        self.overhead = max(self.clock() - began - trained, 0.0) / max(made, 1)
        return standings

    def _measure(self) -> Mapping[Setting, Standing]:
        return self.measure(self.tried, self.runs, max(self.deadline - self.clock(), 0.0))


def survivors(standings: Mapping[Setting, Standing]) -> list[Setting]:
    """Return the settings that stay in the race, the fastest first: half of those that learned, if not told apart.

    A setting of which it cannot be told yet stays: further runs tell. Raise :class:`StudyError` if there is none.
    """
    hopeful = [one for one in standings if standings[one].learned is not False]
    learned = sorted(hopeful, key=lambda one: standings[one].seconds)
    if not learned:
        raise StudyError("tune: no setting was trained and learned; the report says why")
    fastest = [one for one in learned if standings[one].tied]
    return fastest[: math.ceil(len(learned) / 2)] if fastest else learned[:1]
