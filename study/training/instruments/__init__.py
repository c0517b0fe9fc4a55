"""The measuring instruments of a run: clock, memory, machine, telemetry, arithmetic and reference
workload."""
