"""``python -m study <verb>``."""

import sys

from study.base.processes import end_when_told, open_streams
from study.cli import main

open_streams()
end_when_told()
sys.exit(main(prog="python -m study"))
