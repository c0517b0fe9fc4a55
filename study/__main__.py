"""``python -m study <verb>``."""

import sys

from study.base.processes import end_when_told
from study.cli import main

end_when_told()
sys.exit(main(prog="python -m study"))
