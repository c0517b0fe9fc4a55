"""A file of `config/studies`: keys, factors, and what is fitted against what."""

from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import Field, model_validator

from study.base.strict import Strict
from study.config.settings import Keys, setting_keys

Total = Literal[
    "fit_seconds",
    "blog_seconds",
    "train_seconds",
    "epoch_seconds",
    "valid_seconds",
    "step_seconds",
    "thousand_images_seconds",
]
TOTALS_OF_INFERENCE: tuple[Total, ...] = ("thousand_images_seconds",)


class Curve(Strict):
    """What is fitted against what."""

    x: str = Field("training.batch_size", description="The factor on the horizontal axis.")
    y: Total = Field(
        "fit_seconds",
        description="The time that is fitted, in seconds; with `task: inference` it is `thousand_images_seconds`.",
    )


class Study(Keys):
    """One file in `config/studies`."""

    title: str = Field(min_length=1, description="A name for headings.")
    question: str = Field(min_length=1, description="What the study asks, as one sentence.")
    factors: dict[str, list[Any]] = Field(
        default_factory=dict,
        description="Dotted keys with their levels; the runs are the product of the levels times `replicates`.",
    )
    null_control: bool = Field(
        False,
        description="Run every configuration twice in each block, as the two levels of the factor `control`: what "
        "differs between them is the machine's noise.",
    )
    replicates: int = Field(3, ge=1, le=1000, description="How often each configuration is run, in randomised blocks.")
    curve: Curve | None = Field(None, description="What is fitted against what; none for no fit.")
    time: Total | None = Field(
        None,
        description="The time that is compared, in a study without a `curve`; none is `fit_seconds`, or "
        "with `task: inference` `thousand_images_seconds`.",
    )
    contrast: str | None = Field(None, description="The factor whose levels are compared as a ratio of times.")
    reduced: dict[str, Any] = Field(
        default_factory=dict,
        description="Dotted keys (or `replicates`) with their values under `size: reduced`, for a machine of two "
        "CPU cores.",
    )
    full: dict[str, Any] = Field(
        default_factory=dict, description="Written by the pipeline: what the reduced keys replaced. Not for a file."
    )
    published: str | None = Field(None, description="The study in `study/published.csv` to show beside the runs.")

    @property
    def compared(self) -> list[str]:
        """The factors whose levels differ: all but the null control's, whose runs are replicates of each other."""
        return [key for key in self.factors if key != "control"]

    @property
    def total(self) -> Total:
        """The time that is analysed: the curve's, else the one that is named, else the one that the task is about."""
        if self.curve:
            return self.curve.y
        return self.time or (TOTALS_OF_INFERENCE[0] if self.task == "inference" else "fit_seconds")

    @model_validator(mode="before")
    @classmethod
    def _a_null_control_is_a_factor(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("null_control") is True:
            factors = values.get("factors") or {}
            if isinstance(factors, dict) and "control" not in factors:
                return values | {"factors": factors | {"control": ["first", "second"]}}
        return values

    @model_validator(mode="after")
    def _reduced_names_keys(self) -> Self:
        allowed = [*setting_keys(), "replicates"]
        for key in self.reduced:
            if key not in allowed:
                raise ValueError(f"reduced: {key!r} names no key; allowed: {', '.join(allowed)}")
        return self

    @model_validator(mode="after")
    def _factors_name_keys_and_levels(self) -> Self:
        allowed = setting_keys()
        for key, levels in self.factors.items():
            if key not in allowed:
                raise ValueError(f"factors: {key!r} names no key; allowed: {', '.join(allowed)}")
            if not levels:
                raise ValueError(f"factors.{key}: [] is not allowed: give at least one level")
            if any(isinstance(level, (dict, list)) for level in levels):
                raise ValueError(f"factors.{key}: {levels} is not allowed: a level is one value, no list or mapping")
            if len({repr(level) for level in levels}) < len(levels):
                raise ValueError(f"factors.{key}: {levels} holds a level twice: give each level once")
        if self.curve and self.time:
            raise ValueError(f"time: {self.time!r} is not allowed with a curve, which has its own: curve.y")
        if self.curve and self.curve.x not in self.factors:
            raise ValueError(f"curve.x: {self.curve.x!r} is no factor; allowed: {', '.join(self.factors) or 'none'}")
        own = [y for y in get_args(Total) if (y in TOTALS_OF_INFERENCE) == (self.task == "inference")]
        if self.total not in own and "task" not in self.factors:
            key = "curve.y" if self.curve else "time"
            raise ValueError(f"{key}: {self.total!r} is not allowed with task {self.task}; allowed: {', '.join(own)}")
        if self.contrast and self.contrast not in self.factors:
            raise ValueError(f"contrast: {self.contrast!r} is no factor; allowed: {', '.join(self.factors) or 'none'}")
        return self


def shown(study: Study, key: str, level: Any) -> Any:
    """A level as tables show it: a path by its base name, where that tells it from the other levels."""
    if isinstance(level, bool) or not isinstance(level, (int, float)):
        names = [Path(str(other)).name for other in study.factors.get(key, [])]
        return Path(str(level)).name if names.count(Path(str(level)).name) == 1 else str(level)
    return level
