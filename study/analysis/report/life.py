"""Where the whole wall time of a study goes: runs from the end of the one before, and the share that was training."""

import pandas as pd

from study.analysis.figures.bars import LIFE, Bar, BarsChart, bars_chart
from study.analysis.figures.svg import Chart
from study.analysis.words import place_words
from study.artifacts.setting import Setting
from study.artifacts.timing import LIFETIME_COLUMNS
from study.base.quantities import duration_words

CAPTION = (
    "The mean of a run, from its start to that of the next one. Cold steps are the first ones. They take "
    "longer: kernels are loaded, algorithms are tried, code is compiled."
)


def life_chart(groups: list[tuple[Setting, pd.DataFrame]]) -> Chart | None:
    """Return the parts of a run's whole time for each group of runs; None where they were not recorded.

    ``groups`` holds the setting and the rows of each group.
    """
    known = {
        place_words(group): rows[rows["outcome"] == "ok"].dropna(subset=LIFETIME_COLUMNS) for group, rows in groups
    }
    bars = tuple(Bar(place, _parts(rows)) for place, rows in known.items() if len(rows))
    return bars_chart(BarsChart({"": bars}, "Where a run's whole time goes", "", CAPTION, LIFE))


def _parts(runs: pd.DataFrame) -> dict[str, float]:
    """Return the mean seconds of each part of ``runs``."""
    means = runs[[*LIFETIME_COLUMNS, "between_seconds"]].mean().fillna(0.0).to_dict()
    known = {key: float(means[key]) for key in LIFE if key in means}
    fit, valid, cold = means["fit_seconds"], means["valid_seconds"], means["warm_up_extra_seconds"]
    known |= {"build_seconds": means["setup_seconds"] + means["model_seconds"]}
    known |= {"cold_seconds": cold, "warm_seconds": fit - valid - cold}
    rest = max(0.0, means["process_seconds"] - sum(known.values()))
    return known | {"end_seconds": rest + means["between_seconds"]}


def with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with a column ``between_seconds``: from the end of the run before to the start of this one.

    It is the mean over the runs of a start, because starts are known to the second only; empty for a start of one run.
    """
    found = pd.Series(float("nan"), index=frame.index)
    known = pd.to_datetime(frame["started"], utc=True, format="ISO8601", errors="coerce")  # it may be any text
    made = frame[known.notna() & frame["process_seconds"].notna()]
    for _, runs in made.groupby("session"):
        starts = known[runs.index].sort_values()
        whole = (starts.iloc[-1] - starts.iloc[0]).total_seconds()
        within = runs.loc[starts.index[:-1], "process_seconds"].sum()
        if len(runs) > 1:
            found[runs.index] = max(0.0, whole - within) / (len(runs) - 1)
    return frame.assign(between_seconds=found)


def wall_seconds(frame: pd.DataFrame) -> float:
    """Return the wall time of all runs of a study, excluded ones too, with the pauses within starts.

    It is 0 where no run's time is known.
    """
    made = with_gaps(frame[frame["process_seconds"].notna()])
    return float(made["process_seconds"].sum() + made["between_seconds"].fillna(0.0).sum())


def life_sentence(frame: pd.DataFrame) -> str:
    """Return the wall time of a study, and the share of it that trained; empty if unknown."""
    wall, trained = wall_seconds(frame), float(frame["fit_seconds"].sum())
    if not wall:
        return ""
    share = f" {trained / wall:.0%} of that was training with its validation." if trained else ""
    return f"The runs took {duration_words(wall)} in all.{share}"
