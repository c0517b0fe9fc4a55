"""``python -m study <verb>``."""

import sys

from study.cli import main

sys.exit(main(prog="python -m study"))
