"""The race: settings are run in blocks, and the slower half is dropped, until one is left or the time is over.

This is successive halving (Jamieson and Talwalkar 2016). The gain is not judged by the race, whose winner was lucky,
too: it is measured in further blocks, in which the winner and the baseline alone run.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from study.base.errors import StudyError
from study.tune.space import Levels, Space

Setting = int
"""The place of a setting among those that were tried; 0 is the baseline."""
FIRST = 3
"""Settings of the first block: the baseline, the study's own, and everything on."""
CONFIRMING = 3
"""Blocks that measure the gain."""
SHARE = 0.4
"""Share of the time that is left after the first block in which every other setting runs once."""


@dataclass(frozen=True)
class Standing:
    """What is known of one setting."""

    seconds: float
    """Its mean time."""
    learned: bool
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
    block_seconds: float = 0.0
    """Seconds that a run took at most, with its share of a start."""

    def run(self) -> tuple[Setting, int, Mapping[Setting, Standing]]:
        """Return the winner, the number of blocks before those that measure its gain, and the last standings.

        Raise :class:`StudyError` if no setting was trained, or none of them learned.
        """
        self.tried = [self.space.baseline, *self.space.others[: FIRST - 1]]
        standings = self._block(range(len(self.tried)))
        more = int(SHARE * self._left() / self.block_seconds)
        if more > 0 and len(self.space.others) >= FIRST:
            self.tried += self.space.others[FIRST - 1 : FIRST - 1 + more]
            standings = self._block(range(len(self.tried)), again=False)
        racing = survivors(standings)
        while len(racing) > 1 and self._left() > (len(racing) + 1) * self.block_seconds:
            standings = self._block([0, *(one for one in racing if one != 0)])
            racing = survivors({one: standing for one, standing in standings.items() if one in racing})
        winner, raced = racing[0], self.runs[0]
        if winner != 0:
            self.runs |= dict.fromkeys((0, winner), raced + CONFIRMING)
            standings = self._measure()
        return winner, raced, standings

    def _left(self) -> float:
        """Return the seconds until the blocks that measure the gain have to begin."""
        return self.deadline - self.clock() - (2 * CONFIRMING + 1) * self.block_seconds

    def _block(self, settings: Sequence[Setting], again: bool = True) -> Mapping[Setting, Standing]:
        """Run each setting once more, or those alone that have not run yet."""
        counts = {one: self.runs.get(one, 0) + 1 if again else max(self.runs.get(one, 0), 1) for one in settings}
        made = sum(counts.values()) - sum(self.runs.get(one, 0) for one in settings)
        self.runs |= counts
        began = self.clock()
        standings = self._measure()
        self.block_seconds = (self.clock() - began) / max(made, 1)
        return standings

    def _measure(self) -> Mapping[Setting, Standing]:
        return self.measure(self.tried, self.runs, max(self.deadline - self.clock(), 0.0))


def survivors(standings: Mapping[Setting, Standing]) -> list[Setting]:
    """Return the settings that stay in the race, the fastest first: half of those that learned, if not told apart.

    Raise :class:`StudyError` if there is none.
    """
    learned = sorted((one for one in standings if standings[one].learned), key=lambda one: standings[one].seconds)
    if not learned:
        raise StudyError("tune: no setting was trained and learned; the report says why")
    fastest = [one for one in learned if standings[one].tied]
    return fastest[: math.ceil(len(learned) / 2)] if fastest else learned[:1]
