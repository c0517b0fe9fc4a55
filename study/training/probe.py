"""Probe of an image: prints Python, library versions and any trouble with the GPU as one line of JSON.

It fails if the training stack cannot be imported.
"""

import json

from study.training.measure.machine import gpu_trouble, libraries, python

if __name__ == "__main__":
    print(json.dumps({"python": python(), "libraries": libraries(), "gpu_trouble": gpu_trouble()}))
