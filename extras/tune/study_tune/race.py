"""The race: settings are run in rounds, and the slower half is dropped, until one is left or the
time is over.

This is successive halving (Jamieson and Talwalkar 2016): each round has half of the settings and
twice the runs. A round is one start of the pipeline, for a start costs as much as several short
runs. Batch sizes are tried first, and then what differs least from the fastest so far.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from study.base.errors import StudyError
from study_tune.space import BATCH_SIZE, Levels, Space

Setting = int
"""The place of a setting among those that were tried; 0 is the baseline."""
FIRST = 3
"""Settings of the first round: the baseline, the study's own, and everything on."""
CONFIRMING = 3
"""The most blocks of the last round, in which the winner and the baseline alone run."""
LAST = 1
"""Blocks of the last round for which the rounds before leave time."""
LEAST_SECONDS = 0.1
SHARE = 0.8
"""Share of the time that is left after the first round in which every other setting runs once."""


@dataclass(frozen=True)
class Standing:
    """What is known of one setting."""

    seconds: float
    """Its mean time."""
    run_seconds: float
    """Mean time from the start of a run to that of the next one."""
    learned: bool | None
    """None where it cannot be told yet."""
    tied: bool = True
    """Whether it cannot be told from the fastest."""


Measure = Callable[[Sequence[Levels], Mapping[Setting, int], float], Mapping[Setting, Standing]]
"""Runs each setting the given number of times in all, within some seconds, and returns what is
known of those that have a successful run."""


@dataclass
class Race:
    """A race under way. ``clock`` returns seconds."""

    space: Space
    measure: Measure
    clock: Callable[[], float]
    deadline: float
    tried: list[Levels] = field(default_factory=list)
    runs: dict[Setting, int] = field(default_factory=dict)
    costs: dict[Setting, float] = field(default_factory=dict)
    """Mean seconds that a run takes of each setting that has a successful one."""
    start: float = 0.0
    """Seconds of the last start beyond those of its runs."""

    def run(self) -> tuple[Setting, Mapping[Setting, Standing]]:
        """Return the fastest setting beside the baseline, and the last standings; 0 where no other
        one learned.

        Raise :class:`StudyError` if no setting was trained, or none of them learned.
        """
        self.tried = [self.space.baseline, *self.space.others[: FIRST - 1]]
        standings = self._round(dict.fromkeys(range(len(self.tried)), 1))
        more = int((SHARE * self._left() - self.start) / self._cost())
        both = int(
            (self.deadline - self.clock() - self.start - sum(map(self._cost, self.runs)))
            / (2 * self._cost())
        )
        if more > 0:
            self.tried += self._next(standings)[:more]
            standings = self._round(
                {one: max(self.runs.get(one, 0), 1) for one in range(len(self.tried))}
            )
        # one more start is all there is time for: it tries others, and repeats those that ran
        elif both > 0:
            self.tried += self._next(standings)[:both]
            standings = self._round(dict.fromkeys(range(len(self.tried)), 2))
        racing = survivors(standings)
        while len(racing) > 1:
            block = [0, *(one for one in racing if one != 0)]
            left = self._left() - self.start
            blocks = min(self.runs[0], int(left / sum(map(self._cost, block))))
            if blocks < 1:
                break
            standings = self._round({one: self.runs[one] + blocks for one in block})
            racing = survivors(
                {one: standing for one, standing in standings.items() if one in racing}
            )
        winner = next((one for one in (*racing, *_learned(standings)) if one != 0), 0)
        if winner != 0 and racing[0] != 0:
            left = self.deadline - self.clock() - self.start
            blocks = min(CONFIRMING, int(left / (self._cost(0) + self._cost(winner))))
            if blocks > 0:
                standings = self._round(
                    dict.fromkeys((0, winner), max(self.runs[0], self.runs[winner]) + blocks)
                )
        return winner, standings

    def _next(self, standings: Mapping[Setting, Standing]) -> list[Levels]:
        """Return the settings that were not tried: other batch sizes of the fastest, then the
        nearest."""
        fastest = next((one for one in _learned(standings) if one != 0), 0)
        best = self.tried[fastest]

        def distance(levels: Levels) -> tuple[bool, int]:
            differs = {key for key, level in levels.items() if level != best.get(key)}
            return differs != {BATCH_SIZE}, len(differs)

        return sorted((one for one in self.space.others if one not in self.tried), key=distance)

    def _left(self) -> float:
        """Return the seconds until the last round has to begin, with a run of the baseline in
        hand."""
        last = self.start + LAST * (self._cost(0) + self._cost())
        return self.deadline - self.clock() - last - self._cost(0)

    def _cost(self, setting: Setting | None = None) -> float:
        """Return the seconds that a run of a setting takes; of one without a successful run the
        mean of the others."""
        others = (
            [seconds for one, seconds in self.costs.items() if one != 0]
            or list(self.costs.values())
            or [0.0]
        )
        known = None if setting is None else self.costs.get(setting)
        return max(fmean(others) if known is None else known, LEAST_SECONDS)

    def _round(self, counts: Mapping[Setting, int]) -> Mapping[Setting, Standing]:
        """Run each setting until it has that number of runs, in one start."""
        made = {one: count - self.runs.get(one, 0) for one, count in counts.items()}
        self.runs |= counts
        began = self.clock()
        standings = self.measure(self.tried, self.runs, max(self.deadline - began, 0.0))
        self.costs |= {one: standing.run_seconds for one, standing in standings.items()}
        ran = sum(self._cost(one) * count for one, count in made.items())
        self.start = max(self.clock() - began - ran, 0.0)
        return standings


def survivors(standings: Mapping[Setting, Standing]) -> list[Setting]:
    """Return the settings that stay in the race, the fastest first: half of those that learned, if
    not told apart.

    A setting of which it cannot be told yet stays: further runs tell. Raise :class:`StudyError` if
    there is none.
    """
    learned = _learned(standings)
    if not learned:
        raise StudyError("tune: no setting was trained and learned; the report says why")
    fastest = [one for one in learned if standings[one].tied]
    return fastest[: math.ceil(len(learned) / 2)] if fastest else learned[:1]


def _learned(standings: Mapping[Setting, Standing]) -> list[Setting]:
    """Return the settings that are not shown to learn less, the fastest first."""
    hopeful = [one for one in standings if standings[one].learned is not False]
    return sorted(hopeful, key=lambda one: standings[one].seconds)
