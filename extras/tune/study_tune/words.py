"""What ``tune`` says at its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from study.analysis.stats.estimate import Estimate
from study.analysis.words import interval, number
from study.base.errors import duration_words, quantity
from study.config.keys import as_yaml
from study.config.settings import in_words
from study.config.study import Study, display_level
from study_tune.race import Setting, Standing
from study_tune.space import Levels, Space


@dataclass(frozen=True)
class Gain:
    """The baseline and the winner, compared over all their runs."""

    times_as_fast: Estimate
    """With bounds that hold for every setting that was tried."""
    runs: int
    """Of the one that has fewer."""
    baseline_accuracy: float
    winner_accuracy: float

    @property
    def shown(self) -> bool:
        """Whether it is shown that the winner is faster."""
        return self.times_as_fast.low is not None and self.times_as_fast.low > 1


def ending(
    study: Study,
    space: Space,
    tried: Sequence[Levels],
    winner: Setting,
    standings: Mapping[Setting, Standing],
    gain: Gain | None,
    runs: Mapping[Setting, int],
    seconds: float,
) -> list[str]:
    """Return the verdict, the settings to take, and what was tried, in lines."""
    stock = (
        "stock fastai with its defaults"
        if space.baseline.get("training.loop") == "fastai"
        else "the study as it is"
    )
    changed = {key: level for key, level in tried[winner].items() if level != space.baseline[key]}
    failed = len(runs) - len(standings)
    unlearned = sum(standing.learned is False for standing in standings.values())
    unclear = sum(standing.learned is None for standing in standings.values())
    left = [f"{failed} without a successful run"] * bool(failed)
    left += [f"{unlearned} did not learn as well as the best"] * bool(unlearned)
    left += [f"of {unclear} it cannot be told whether they learned as well as the best"] * bool(
        unclear
    )
    learned = standings[winner].learned if winner in standings else None
    taken = bool(changed) and gain is not None and gain.shown and learned is not False
    lines = [_verdict(study, changed, stock, gain, learned)] + [f"take: {_yaml(changed)}"] * taken
    tail = "".join(f"; {text}" for text in left)
    return [
        *lines,
        f"tried: {quantity(len(runs), 'setting')} in {quantity(sum(runs.values()), 'run')} and "
        f"{duration_words(seconds)}{tail}",
    ]


def _verdict(
    study: Study, changed: Levels, stock: str, gain: Gain | None, learned: bool | None
) -> str:
    if not changed:
        return f"no gain shown: no other setting was trained and learned as well as {stock}"
    named = ", ".join(_named(study, key, level) for key, level in changed.items())
    if gain is None:
        return f"no gain shown: fastest in the race: {named}; {stock} has no run to compare it with"
    bounds = interval(gain.times_as_fast.low, gain.times_as_fast.high)
    told = (
        f"{named}: {number(gain.times_as_fast.value)} times{f' (95%: {bounds})' if bounds else ''} "
        f"as fast as {stock}, in {quantity(gain.runs, 'run')} each; accuracy "
        f"{gain.winner_accuracy:.0%} and {gain.baseline_accuracy:.0%}"
    )
    if learned is False:
        return f"no gain shown: {told}; it did not learn as well"
    doubt = "; whether it learned as well cannot be told yet" * (learned is None)
    return f"{'' if gain.shown else 'no gain shown: '}{told}{doubt}"


def _named(study: Study, key: str, level: object) -> str:
    if key == "training.loop":
        return "the plain loop"
    plain = level == "auto" or type(level) in (int, float)
    return f"{in_words(key)} {level}" if plain else str(display_level(study, key, level))


def _yaml(changed: Levels) -> str:
    return ", ".join(f"{key}: {as_yaml(level)}" for key, level in changed.items())
