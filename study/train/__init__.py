"""The training loops. Each takes a :class:`~study.train.schedule.TrainingJob` and returns a Measurement."""
