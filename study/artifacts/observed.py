"""What others did on a machine: the values that the keys of a study's ``evidence`` limit."""

from collections.abc import Mapping

from pydantic import ConfigDict, Field

from study.artifacts.machine import Magnitude, Whole
from study.base.strict import Strict


class Observed(Strict):
    """The machine over a time, such as from the start of a run's process to its end. Null: unknown."""

    model_config = ConfigDict(allow_inf_nan=False)

    others_cpu_percent: Magnitude | None = Field(
        None,
        description="CPU time of processes that are not the run's, its launcher's or its container's, in percent of "
        "the CPUs that the run may use.",
    )
    steal_percent: Magnitude | None = Field(
        None, description="Time in which a virtual machine's host ran others on those CPUs, in percent of them."
    )
    cpu_pressure_percent: Magnitude | None = Field(
        None, description="Share of the time in which some process of the machine waited for a CPU (PSI, `some`)."
    )
    io_pressure_percent: Magnitude | None = Field(
        None, description="Share of the time in which all processes with work waited for a disk (PSI, `full`)."
    )
    memory_pressure_percent: Magnitude | None = Field(
        None, description="Share of the time in which all processes with work waited for memory (PSI, `full`)."
    )
    throttled_percent: Magnitude | None = Field(
        None, description="Share of the samples in which heat, power supply or hardware slowed the GPU down."
    )
    device_processes: Whole | None = Field(
        None, description="Number of processes of others on the GPU, before or after the run."
    )
    device_percent: Magnitude | None = Field(None, description="Utilisation of the GPU by others, before the run.")

    def crossed(self, limits: Mapping[str, float | None]) -> list[str]:
        """Return the keys of ``limits`` that a known value lies above. A limit of None is none."""
        pairs = {key: (getattr(self, key), limit) for key, limit in limits.items()}
        return [
            key for key, (value, limit) in pairs.items() if value is not None and limit is not None and value > limit
        ]
