"""What a template of runs imports leaves it fit to be forked, and what it calls is there."""

import os
import pkgutil
import subprocess
import sys

import pytest

from study.config.settings import Settings
from study.host.forked import JOB_MODULE, main_of
from study.training import job
from study.training.distributed import forked

LOOPS = ("torch", "inference", "loader_alone")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has templates")
@pytest.mark.parametrize("module", [*(f"loops.{loop}.loop" for loop in LOOPS), "distributed.forked"])
def test_a_template_of_runs_has_one_thread_and_has_started_no_gpu(module: str) -> None:
    """Of several threads only one would live on in a forked process, without the locks that the others held. What
    forks ranks is forked itself."""
    code = (
        f"import os, {JOB_MODULE}, study.training.{module}, torch\n"
        "print(len(os.listdir('/proc/self/task')), torch.cuda.is_initialized())"
    )
    variables = dict(os.environ) | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]


@pytest.mark.parametrize(
    ("strategy", "main"), [("single", job.main), ("ddp", forked.main), ("ddp_two_nodes", forked.main)]
)
def test_what_a_template_calls_forks_ranks_where_a_run_has_some(strategy: str, main: object) -> None:
    settings = Settings.model_validate({"training": {"strategy": strategy, "processes": 2}})
    assert pkgutil.resolve_name(main_of(settings)) is main
