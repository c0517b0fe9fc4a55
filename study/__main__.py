"""``python -m study <verb>``, and the command ``study``."""

import sys
import traceback
from pathlib import Path

from study.base.environment import enter

WINDOWS = (
    "Windows itself is not supported: open WSL2 (`wsl --install`), where everything "
    "works as on Linux"
)


def main() -> None:
    """Run the verb that was typed, and end with its exit code."""
    if sys.platform == "win32":
        sys.exit(f"error: {WINDOWS}")
    enter(sys.argv[1:])
    try:
        from study.base.processes import end_when_told, open_streams
        from study.cli import main as run

        open_streams()
        end_when_told()
        sys.exit(run(prog="python -m study" if sys.argv[0].endswith("__main__.py") else "study"))
    except Exception:
        _note(traceback.format_exc())
        raise


def _note(words: str) -> None:
    """Write into a step's log what no verb explains, such as a module that cannot be imported."""
    if "--log" in sys.argv:
        with Path(sys.argv[sys.argv.index("--log") + 1]).open("a", encoding="utf-8") as file:
            file.write(words)


if __name__ == "__main__":
    main()
