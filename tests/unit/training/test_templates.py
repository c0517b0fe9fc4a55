"""What a template of runs imports leaves it fit to be forked."""

import os
import subprocess
import sys

import pytest

from study.host.forked import JOB_MODULE


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has templates")
@pytest.mark.parametrize("loop", ["torch", "inference", "loader_alone"])
def test_a_template_of_runs_has_one_thread_and_has_started_no_gpu(loop: str) -> None:
    """Of several threads only one would live on in a forked process, without the locks that the others held."""
    code = (
        f"import os, {JOB_MODULE}, study.training.loops.{loop}.loop, torch\n"
        "print(len(os.listdir('/proc/self/task')), torch.cuda.is_initialized())"
    )
    variables = dict(os.environ) | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "False"]
