"""What lies beside the core, which imports none of it. `study.verbs.declare` names the verbs of each package."""
