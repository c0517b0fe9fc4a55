"""The reference workload as a run measures it."""

import torch

from study.artifacts.samples import WARM_UP_REPETITIONS
from study.training.instruments import reference_workload


def test_it_changes_no_generator_and_no_setting() -> None:
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    seconds = reference_workload.repetitions(torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    assert len(seconds) == WARM_UP_REPETITIONS + reference_workload.REPETITIONS["cpu"]
    assert min(seconds) > 0
