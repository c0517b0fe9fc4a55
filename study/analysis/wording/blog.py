"""The sentences of a blog's post that no finding holds."""

from collections.abc import Iterable, Sequence

from study.analysis.words import listed, number, short_key, total_words
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.config.study import shown

NONE = "-"
"""A cell without a value."""
ROWS = (
    "Each time is a geometric mean over runs, each a process of its own, with its 95% interval. Relative Performance "
    "is the smallest mean over the mean of the row, whether a setting learned or not. The corrected column knows only "
    "settings that are shown to have learned and whose mean is determined. The last column says what the runs "
    "determine."
)
RATIOS = "Times are compared within blocks. Without an interval there are too few clean runs to give one."
PUBLISHED_LAW = "This is the published law, the power law of T(b)."
LAWS = "The corrected table has every law that was fitted: a smaller AICc is better, and the weights sum to 1."
CLAIMS = (
    "Beside each published claim stands how far the figures that were printed with it support it, and what was "
    "measured here."
)
NOT_MEASURED = "Nothing was measured here that speaks to it."


def title_words(titles: Sequence[str]) -> str:
    """Return the title of a post about one study or more."""
    return listed(titles) if len(titles) < 4 else f"{', '.join(titles[:2])} and {len(titles) - 2} more studies"


def time_heading(total: str) -> str:
    """Return the heading of a column of times: the blog's, where a training is timed."""
    words = total_words(total)
    return "Training Time" if words.startswith("training time") else words.capitalize()


def time_sentence(total: str) -> str:
    """Return what the times are, in a sentence."""
    return f"The time is the {total_words(total)} ({total} in the table of timings)."


def hardware(records: Iterable[Record]) -> list[tuple[str, str]]:
    """Return name and value of the CPU, the GPU and the system of the runs."""
    found: dict[str, dict[str, None]] = {"CPU": {}, "GPU": {}, "System": {}}
    for record in records:
        machine = record.machine
        if machine is None:
            continue
        cores = f"{machine.cpu_cores} cores, " if machine.cpu_cores else ""
        found["CPU"][f"{machine.cpu_name} ({cores}{machine.cpu_threads} threads)"] = None
        if record.settings.device == "cuda":
            found["GPU"][machine.device_name] = None
        libraries = [f"{name} {version}" for name, version in machine.libraries.items()]
        where = "on the host" if record.software.engine == "none" else f"in containers of {record.software.engine}"
        found["System"][", ".join([machine.system, f"Python {machine.python}", *libraries, where])] = None
    return [(name, "; ".join(values)) for name, values in found.items() if values]


def method(plan: Plan, records: Iterable[Record]) -> list[tuple[str, str]]:
    """Return name and value of what was run: the images, the training, the factors and the order of the runs."""
    study, training = plan.study, plan.study.training
    images = {
        f"{data.source}{', drawn and no photographs' if data.generated else ''}: {data.train_images} images to train, "
        f"{data.valid_images} to validate; classes: {listed(data.classes)}": None
        for data in (record.data for record in records)
        if data
    }
    frozen = f"{training.freeze_epochs} frozen and " if training.freeze_epochs else ""
    models = listed([str(name) for name in study.factors.get("model.name", [study.model.name])])
    loops = listed([str(name) for name in study.factors.get("training.loop", [training.loop])])
    levels = [f"{short_key(key)} {listed([str(shown(study, key, x)) for x in v])}" for key, v in study.factors.items()]
    return [
        *([("Images", "; ".join(images))] if images else []),
        ("Training", f"{models}, {loops} loop, {frozen}{training.epochs} epoch(s)"),
        *([("Compared", "; ".join(levels))] if levels else []),
        ("Order", f"{study.runs_a_setting} run(s) of each setting, in randomised complete blocks (seed {study.seed})"),
    ]


def interval_words(low: float | None, high: float | None) -> str:
    """Return a 95% interval for a table; nothing where an end is missing."""
    return NONE if low is None or high is None else f"{number(low)} to {number(high)}"
