"""The times that a study can compare: each with its words, its parts, and what its clock spans."""

from typing import Literal, NamedTuple

PHASES = (
    "data_wait",
    "transfer",
    "graph_warm_up",
    "device_transform",
    "forward",
    "backward",
    "optimizer",
)
"""The phases of a training step, in their order."""
STEPS = tuple(f"{phase}_seconds" for phase in PHASES)
OF_A_STEP = tuple(
    f"step_{phase}_seconds" for phase in ("data_wait", "forward", "backward", "optimizer")
)
"""The phases of a steady step that are known of each run."""
OTHER, VALIDATION = "other_seconds", "valid_seconds"
FIT = (*STEPS, OTHER, VALIDATION)

TimeName = Literal[
    "fit_seconds",
    "blog_seconds",
    "train_seconds",
    "steady_seconds",
    "epoch_seconds",
    "valid_seconds",
    "step_seconds",
    "target_seconds",
    "command_seconds",
    "marked_seconds",
    "printed_seconds",
]
"""A time, by its column in the table of timings."""


class Time(NamedTuple):
    """What is known of one time."""

    takes: str
    """What takes it, with its verb."""
    heading: str
    """What it is, for a heading; it is in seconds."""
    parts: tuple[str, ...] = ()
    """The columns of the table of timings that add up to it, or whose shares are those of its
    parts."""
    spans: Literal["training", "part", "target", "command"] = "part"
    """What its clock spans: a whole training, a part of one, a training until its target, or
    a command."""
    needs: str = ""
    """The key without which no run has it."""


TIMES: dict[TimeName, Time] = {
    "fit_seconds": Time("the training takes", "training time", FIT, "training"),
    "blog_seconds": Time(
        "the training takes",
        "training time with model construction",
        ("model_seconds", *FIT),
        "training",
    ),
    "train_seconds": Time(
        "the training takes", "training time without validation", (*STEPS, OTHER), "training"
    ),
    "steady_seconds": Time(
        "the training takes, warm,", "training time without warm-up and validation"
    ),
    "epoch_seconds": Time("an epoch takes", "training time of an epoch", (*STEPS, OTHER)),
    "valid_seconds": Time("the validation takes", "validation time"),
    "step_seconds": Time("a step takes", "step time", OF_A_STEP),
    "target_seconds": Time(
        "the target accuracy takes",
        "time to the target accuracy",
        spans="target",
        needs="training.target_accuracy",
    ),
    "command_seconds": Time(
        "the command takes",
        "time of the command",
        ("command_start_seconds", "marked_seconds"),
        "command",
    ),
    "marked_seconds": Time(
        "the work takes", "time of the command's work", spans="command", needs="output.starts"
    ),
    "printed_seconds": Time(
        "the command's own time takes",
        "time by the command's own clock",
        spans="command",
        needs="output.seconds",
    ),
}
