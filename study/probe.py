"""Inside an image: does the training stack import, and does torch find a GPU? One line of JSON."""

import json

import study.job  # noqa: F401 - with it, all that a run imports
from study.measure.machine import gpu_trouble, libraries, python

if __name__ == "__main__":
    print(json.dumps({"python": python(), "libraries": libraries(), "gpu_trouble": gpu_trouble()}))
