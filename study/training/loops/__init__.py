"""The training loops. Each takes a :class:`~study.training.loops.contract.TrainingJob` and returns
a Measurement."""
