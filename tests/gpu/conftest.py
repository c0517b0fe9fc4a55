"""When the tests of this folder run: by themselves on a GPU machine, each file in a process of its
own."""

import os

import pytest

from study.base import devices

GPUS = devices.count("cuda") if os.environ.get("STUDY_TEST_GPU") else 0
NEEDS_GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(GPUS < 1, reason="needs an NVIDIA GPU, and STUDY_TEST_GPU=1"),
]
