"""Clock, memory and machine: what a run is measured with."""
