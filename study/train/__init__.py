"""Two loops, one contract: each takes a :class:`~study.train.schedule.TrainingJob` and returns a Measurement."""
