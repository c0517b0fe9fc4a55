"""The columns of telemetry. The sampler imports them alone: pandas would take a core when a run begins."""

HOST_COLUMNS = (
    "seconds",  # epoch seconds, as from time.time(), to compare with the run's phases
    "cpu_percent",  # the whole machine, 0 to 100
    "process_cpu_percent",  # the watched process and its children, 100 for each core that they fill
    "process_resident_bytes",  # their resident sets added up: see Tree
    "load_1min",
    "available_memory_bytes",
    "cpu_package_joules",  # all packages since the first sample, if RAPL is readable: see read_rapl_joules
)
GPU_COLUMNS = (
    "gpu_utilisation_percent",  # share of time in which any kernel ran
    "gpu_memory_used_bytes",  # whole device, with what the driver reserves
    "gpu_process_memory_bytes",  # every process that computes on the device
    "gpu_power_watts",
    "gpu_energy_joules",  # since the driver was loaded
    "gpu_sm_clock_mhz",
    "gpu_temperature_celsius",
    "gpu_throttle_reasons",  # NVML's bit mask
)
COLUMNS = HOST_COLUMNS + GPU_COLUMNS
