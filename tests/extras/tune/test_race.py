"""Races of planted times: what wins, what it is compared with, and when it ends."""

import random
from collections.abc import Mapping, Sequence

import pytest

from study.base.errors import StudyError
from study_extras.tune.race import CONFIRMING, Race, Setting, Standing, survivors
from study_extras.tune.space import Levels, Space


class Machine:
    """A machine with planted times: each run takes its time, and a start takes ten seconds more."""

    def __init__(self, seconds: Sequence[float], noise: float = 0.05, fails: Sequence[int] = (), seed: int = 0) -> None:
        self.seconds, self.fails, self.noise = seconds, set(fails), noise
        self.random, self.now = random.Random(seed), 0.0
        self.runs: dict[Setting, list[float]] = {}
        self.unlearned: set[int] = set()

    def measure(self, tried: Sequence[Levels], runs: Mapping[Setting, int], within: float) -> dict[Setting, Standing]:
        self.now += 10
        for one, count in runs.items():
            planted = self.seconds[tried[one]["setting"]]
            while len(self.runs.setdefault(one, [])) < count:
                far = 3.0 if self.random.random() < 0.03 else 1.0
                self.runs[one].append(planted * far * self.random.lognormvariate(0, self.noise))
                self.now += self.runs[one][-1] + 1
        known = {one: times for one, times in self.runs.items() if tried[one]["setting"] not in self.fails}
        return {
            one: Standing(sum(times) / len(times), learned=tried[one]["setting"] not in self.unlearned)
            for one, times in known.items()
        }


def race(machine: Machine, minutes: float = 5) -> Race:
    space = Space({}, {"setting": 0}, [{"setting": number} for number in range(1, len(machine.seconds))])
    return Race(space, machine.measure, lambda: machine.now, 60 * minutes)


def planted(seed: int) -> Machine:
    """Twenty settings between three and nine seconds, and a baseline of eight."""
    shuffled = random.Random(seed)
    return Machine([8.0, 7.0, 5.0, *(shuffled.uniform(3, 9) for _ in range(17))], seed=seed)


def test_the_winner_is_near_the_fastest_that_was_tried_although_runs_are_noisy_and_some_are_far() -> None:
    near = 0
    for seed in range(60):
        machine = planted(seed)
        one = race(machine)
        winner, _, _ = one.run()
        best = min(machine.seconds[levels["setting"]] for levels in one.tried)
        near += machine.seconds[one.tried[winner]["setting"]] <= 1.15 * best
    assert near >= 50


def test_the_gain_is_measured_in_blocks_after_the_race_in_which_both_run() -> None:
    machine = planted(1)
    one = race(machine)
    winner, raced, _ = one.run()
    assert one.runs[0] == one.runs[winner] == raced + CONFIRMING


def test_a_race_ends_in_time() -> None:
    for minutes in (2, 5, 20):
        machine = planted(minutes)
        race(machine, minutes).run()
        assert machine.now <= 60 * minutes * 1.1


def test_a_longer_race_tries_more() -> None:
    tried = []
    for minutes in (2, 5, 10):
        one = race(planted(7), minutes)
        one.run()
        tried.append(len(one.tried))
    assert tried == sorted(tried)
    assert tried[0] < tried[-1] == 20


def test_what_does_not_learn_never_wins_and_what_fails_is_left_behind() -> None:
    machine = Machine([8.0, 1.0, 7.0, 6.0, 0.5, 5.0], fails=[4])
    machine.unlearned = {1}
    one = race(machine)
    winner, _, standings = one.run()
    assert one.tried[winner]["setting"] == 5
    assert not standings[1].learned


def test_a_setting_of_which_its_runs_do_not_tell_yet_whether_it_learned_stays_in_the_race() -> None:
    standings = {0: Standing(8.0, learned=True), 1: Standing(2.0, learned=None), 2: Standing(1.0, learned=False)}
    assert survivors(standings) == [1]


def test_a_slow_baseline_leaves_the_race_time_for_the_others() -> None:
    """Stock fastai took 35 s where the others took 5: its cost is no reason to try none of them."""
    machine = Machine([35.0, 5.0, 5.0, *(4.0 + 0.2 * number for number in range(10))])
    one = race(machine)
    winner, _, _ = one.run()
    assert len(one.tried) > 3
    assert one.tried[winner]["setting"] != 0
    assert machine.now <= 300 * 1.1


def test_a_race_in_which_the_baseline_is_the_fastest_says_so() -> None:
    machine = Machine([2.0, 9.0, 8.0, 7.0])
    one = race(machine)
    assert one.run()[0] == 0


def test_without_a_setting_that_learned_there_is_no_winner() -> None:
    with pytest.raises(StudyError, match="no setting was trained and learned"):
        survivors({0: Standing(1.0, learned=False)})
    with pytest.raises(StudyError, match="no setting was trained and learned"):
        survivors({})


def test_settings_that_are_told_from_the_fastest_leave_the_race_before_the_half() -> None:
    standings = {one: Standing(float(one + 1), learned=True, tied=one == 0) for one in range(8)}
    assert survivors(standings) == [0]
    untold = {one: Standing(float(one + 1), learned=True) for one in range(8)}
    assert survivors(untold) == [0, 1, 2, 3]
