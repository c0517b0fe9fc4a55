"""Races of planted times: what wins, what it is compared with, and when it ends."""

import random
from collections.abc import Mapping, Sequence
from statistics import fmean

import pandas as pd
import pytest

from study.analysis.stats.estimate import Estimate
from study.analysis.stats.log_model import fit_log_model
from study.base.errors import StudyError
from study.config.study import Study
from study_tune import words
from study_tune.race import Race, Setting, Standing, survivors
from study_tune.space import Levels, Space
from study_tune.step import gain_over, seconds_between
from tests.conftest import repeats, study_values
from tests.timings import at_least, at_most


class Machine:
    """A machine with planted times: each run takes its time, and a start takes some seconds
    more."""

    def __init__(
        self,
        seconds: Sequence[float],
        noise: float = 0.05,
        fails: Sequence[int] = (),
        seed: int = 0,
        start: float = 10,
    ) -> None:
        self.seconds, self.fails, self.noise = seconds, set(fails), noise
        self.random, self.now, self.starts = random.Random(seed), 0.0, 0
        self.runs: dict[Setting, list[float]] = {}
        self.unlearned: set[int] = set()
        self.start = start

    def measure(
        self, tried: Sequence[Levels], runs: Mapping[Setting, int], within: float
    ) -> dict[Setting, Standing]:
        self.now += self.start
        self.starts += 1
        for one, count in runs.items():
            planted = self.seconds[tried[one]["setting"]]
            while len(self.runs.setdefault(one, [])) < count:
                far = 3.0 if self.random.random() < 0.03 else 1.0
                self.runs[one].append(planted * far * self.random.lognormvariate(0, self.noise))
                self.now += self.runs[one][-1] + 1
        known = {
            one: times
            for one, times in self.runs.items()
            if tried[one]["setting"] not in self.fails
        }
        return {
            one: Standing(
                fmean(times), fmean(times) + 1, learned=tried[one]["setting"] not in self.unlearned
            )
            for one, times in known.items()
        }


def race(machine: Machine, minutes: float = 5) -> Race:
    space = Space(
        {}, {"setting": 0}, [{"setting": number} for number in range(1, len(machine.seconds))]
    )
    return Race(space, machine.measure, lambda: machine.now, 60 * minutes)


def planted(seed: int) -> Machine:
    """Twenty settings between three and nine seconds, and a baseline of eight."""
    shuffled = random.Random(seed)
    return Machine([8.0, 7.0, 5.0, *(shuffled.uniform(3, 9) for _ in range(17))], seed=seed)


def test_the_winner_is_near_the_fastest_that_was_tried_although_runs_are_noisy_and_some_are_outliers() -> (
    None
):
    near = 0
    for seed in range(60):
        machine = planted(seed)
        one = race(machine)
        winner, _ = one.run()
        best = min(machine.seconds[levels["setting"]] for levels in one.tried)
        near += machine.seconds[one.tried[winner]["setting"]] <= 1.15 * best
    assert near >= 50


def gain(machine: Machine, winner: Setting) -> words.Gain:
    rows = [
        (time, one, str(block))
        for one, times in machine.runs.items()
        for block, time in enumerate(times)
    ]
    times, places, blocks = zip(*rows, strict=True)
    model = fit_log_model(list(times), list(places), list(blocks))
    return words.Gain(gain_over(model, 0, winner), len(machine.runs[winner]), 0.9, 0.9)


def taken(machine: Machine, minutes: float = 5) -> bool:
    """Whether a race over these settings shows a gain."""
    winner, _ = race(machine, minutes).run()
    return winner != 0 and gain(machine, winner).shown


@pytest.mark.parametrize("slower", [1.0, 1.05])
def test_of_settings_that_gain_nothing_one_is_taken_in_at_most_one_race_of_twenty(
    slower: float,
) -> None:
    seeds = repeats(40, 150)
    machines = [Machine([5.0] + 10 * [5.0 * slower], seed=seed) for seed in seeds]
    assert sum(map(taken, machines)) <= at_most(0.05, len(machines))


def test_a_setting_that_is_twice_as_fast_is_taken() -> None:
    machines = [Machine([5.0, 5.0, 5.0, 2.5, *(6 * [5.0])], seed=seed) for seed in repeats(20, 60)]
    assert sum(map(taken, machines)) >= at_least(0.9, len(machines))


def test_the_winner_and_the_baseline_have_the_most_runs() -> None:
    machine = planted(1)
    one = race(machine)
    winner, _ = one.run()
    assert one.runs[0] == one.runs[winner] == max(one.runs.values()) >= 4


def test_a_round_is_one_start() -> None:
    """Twenty settings in three minutes, of which a start takes ten seconds: most of the time
    trains."""
    machine = planted(3)
    one = race(machine, 3)
    one.run()
    assert machine.starts <= 6
    assert len(one.tried) >= 8
    assert sum(sum(times) for times in machine.runs.values()) >= 0.5 * machine.now


def test_the_time_between_two_runs_is_that_of_one_start_alone() -> None:
    """Two starts an hour apart: 3 s, and 5 s, from the end of a run to the next one."""
    minutes = ["10:00:00", "10:00:05", "11:00:00", "11:00:07"]
    started = [f"2026-01-01T{one}+00:00" for one in minutes]
    runs = pd.DataFrame({"session": [1, 1, 2, 2], "started": started, "process_seconds": 2.0})
    assert seconds_between(runs) == pytest.approx(4.0)
    assert seconds_between(runs[:1]) == 0.0


def ends(winner: Setting, learned: bool | None, low: float | None) -> list[str]:
    """What is said of a baseline of batch size 32 and another of 64."""
    study = Study.model_validate(study_values())
    tried = [{"training.batch_size": 32}, {"training.batch_size": 64}]
    standings = {0: Standing(9.0, 10.0, True), 1: Standing(6.0, 7.0, learned)}
    found = words.Gain(
        Estimate(value=1.5, low=low, high=None if low is None else 2.25 / low), 4, 0.9, 0.82
    )
    return words.ending(
        study, Space({}, tried[0], tried[1:]), tried, winner, standings, found, {0: 4, 1: 4}, 60.0
    )


def test_only_what_is_shown_to_gain_and_not_to_learn_less_is_to_be_taken() -> None:
    assert ends(1, True, 1.2)[:2] == [
        "batch size 64: 1.50 times (95%: 1.20 to 1.88) as fast as the study as it is, in 4 runs "
        "each; accuracy 82% and 90%",
        "take: training.batch_size: 64",
    ]
    for learned, low in [(True, 0.9), (True, None), (False, 1.2)]:
        said = ends(1, learned, low)
        assert said[0].startswith("no gain shown: batch size 64: 1.50 times")
        assert not any(line.startswith("take") for line in said)
    assert ends(1, False, 1.2)[0].endswith("; it did not learn as well")
    assert ends(0, True, 1.2)[0].startswith("no gain shown: no other setting")


def test_a_race_ends_in_time() -> None:
    for minutes in (2, 5, 20):
        machine = planted(minutes)
        race(machine, minutes).run()
        assert machine.now <= 60 * minutes * 1.1


def test_what_does_not_learn_never_wins_and_what_fails_is_left_behind() -> None:
    machine = Machine([8.0, 1.0, 7.0, 6.0, 0.5, 5.0], fails=[4])
    machine.unlearned = {1}
    one = race(machine)
    winner, standings = one.run()
    assert one.tried[winner]["setting"] == 5
    assert not standings[1].learned


def test_a_setting_of_which_its_runs_do_not_tell_yet_whether_it_learned_stays_in_the_race() -> None:
    standings = {
        0: Standing(8.0, 8.0, learned=True),
        1: Standing(2.0, 2.0, learned=None),
        2: Standing(1.0, 1.0, learned=False),
    }
    assert survivors(standings) == [1]


def test_a_race_in_which_the_baseline_is_the_fastest_says_so() -> None:
    machine = Machine([2.0, 9.0, 8.0, 7.0])
    winner, _ = race(machine).run()
    assert not gain(machine, winner).shown
    assert gain(machine, winner).times_as_fast.value < 1


def test_without_a_setting_that_learned_there_is_no_winner() -> None:
    with pytest.raises(StudyError, match="no setting was trained and learned"):
        survivors({0: Standing(1.0, 1.0, learned=False)})
    with pytest.raises(StudyError, match="no setting was trained and learned"):
        survivors({})
