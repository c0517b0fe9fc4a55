"""What ``tune`` says at its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from study.analysis.stats.log_model import Interval
from study.analysis.words import interval, number, short_key
from study.base.quantities import duration_words, quantity
from study.config.study import Study, shown
from study_extras.tune.race import Setting, Standing
from study_extras.tune.space import Levels, Space


@dataclass(frozen=True)
class Pair:
    """The baseline and the winner, compared in the blocks after the race."""

    times_as_fast: Interval
    blocks: int
    """Runs of the one that has fewer."""
    baseline_accuracy: float
    winner_accuracy: float


def ending(
    study: Study,
    space: Space,
    tried: Sequence[Levels],
    winner: Setting,
    standings: Mapping[Setting, Standing],
    pair: Pair | None,
    runs: Mapping[Setting, int],
    seconds: float,
) -> list[str]:
    """Return the verdict, the settings to take, and what was tried, in lines."""
    stock = (
        "stock fastai with its defaults" if space.baseline.get("training.loop") == "fastai" else "the study as it is"
    )
    changed = {key: level for key, level in tried[winner].items() if level != space.baseline[key]}
    failed = len(runs) - len(standings)
    unlearned = sum(standing.learned is False for standing in standings.values())
    unclear = sum(standing.learned is None for standing in standings.values())
    left = [f"{failed} without a successful run"] * bool(failed)
    left += [f"{unlearned} did not learn as well as the best"] * bool(unlearned)
    left += [f"of {unclear} it cannot be told whether they learned as well as the best"] * bool(unclear)
    doubt = "; whether it learned as well cannot be told yet" if changed and standings[winner].learned is None else ""
    lines = [_verdict(study, changed, stock, pair) + doubt] + [f"take: {_yaml(changed)}"] * bool(changed)
    tail = "".join(f"; {text}" for text in left)
    return [
        *lines,
        f"tried: {quantity(len(runs), 'setting')} in {quantity(sum(runs.values()), 'run')} and "
        f"{duration_words(seconds)}{tail}",
    ]


def _verdict(study: Study, changed: Levels, stock: str, pair: Pair | None) -> str:
    if not changed:
        return f"nothing that was tried is faster than {stock}"
    named = ", ".join(_named(study, key, level) for key, level in changed.items())
    if pair is None:
        return f"fastest in the race: {named}; no time was left to measure what it gains over {stock}"
    bounds = interval(pair.times_as_fast.low, pair.times_as_fast.high)
    return (
        f"{named}: {number(pair.times_as_fast.value)} times{f' (95%: {bounds})' if bounds else ''} as fast as {stock}, "
        f"in {quantity(pair.blocks, 'block')} after the race; accuracy {pair.winner_accuracy:.0%} and "
        f"{pair.baseline_accuracy:.0%}"
    )


def _named(study: Study, key: str, level: object) -> str:
    if key == "training.loop":
        return "the plain loop"
    plain = isinstance(level, (int, float)) and not isinstance(level, bool)
    return f"{short_key(key)} {level}" if plain or level == "auto" else str(shown(study, key, level))


def _yaml(changed: Levels) -> str:
    return ", ".join(
        f"{key}: {str(level).lower() if isinstance(level, bool) else level}" for key, level in changed.items()
    )
