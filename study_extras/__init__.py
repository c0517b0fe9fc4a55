"""What lies beside the core, which imports none of it. `study.verbs.table` names the verbs of each package."""
