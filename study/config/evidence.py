"""The sections ``evidence`` and ``instruments`` of a study: what tells a disturbed run, and a changed machine."""

from pydantic import Field

from study.base.strict import Declared


class Evidence(Declared):
    """The limits of what others may do on the machine while a run is measured. None of them looks at the run's times.
    A run that crosses one is marked as disturbed, kept, and measured once more; the second record counts. A key without
    a value sets no limit. Changing a limit measures no run again.
    """

    others_cpu_percent: float | None = Field(
        10,
        ge=0,
        description="CPU time of processes that are not the run's, in percent of the CPUs that the run may use.",
    )
    steal_percent: float | None = Field(
        2, ge=0, description="Time in which a virtual machine's host ran others on the run's CPUs, in percent of them."
    )
    cpu_pressure_percent: float | None = Field(
        None,
        ge=0,
        description="Share of the time in which some process of the machine waited for a CPU (Linux's PSI). The run's "
        "own threads and workers wait for each other, too: hence no limit by default, but `others_cpu_percent`.",
    )
    io_pressure_percent: float | None = Field(
        None,
        ge=0,
        description="Share of the time in which all processes with work waited for a disk (PSI, `full`). A run that "
        "reads its images from a disk waits, too: hence no limit by default.",
    )
    memory_pressure_percent: float | None = Field(
        5,
        ge=0,
        description="Share of the time in which all processes with work waited for memory, such as for pages that "
        "were swapped out (PSI, `full`).",
    )
    throttled_percent: float | None = Field(
        5,
        ge=0,
        description="Share of the samples in which heat, the power supply or the hardware slowed the GPU down. Its "
        "usual power cap does not count.",
    )
    device_processes: int | None = Field(
        0, ge=0, description="Number of other processes on the GPU when the run began, or after it ended."
    )
    device_percent: float | None = Field(
        10, ge=0, description="Utilisation of the GPU by others when the run began, in percent."
    )


class Instruments(Declared):
    """What a run measures beside its training, outside every timed region. Changing this measures no run again."""

    yardstick: bool = Field(
        True,
        description="True to time a fixed workload before and after each run, which takes about a second. Without it a "
        "change of the machine cannot be told from a difference between settings.",
    )
    ceilings: bool = Field(
        True,
        description="True to measure what the device can do at most, once for each device and precision, which takes "
        "about two seconds. Without it no share of a ceiling is reported.",
    )
