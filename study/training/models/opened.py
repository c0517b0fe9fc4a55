"""What a user's model reads while it is built and tried: what its runs' keys do not hold must not decide it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from study.base.errors import StudyError
from study.config import own_model


@contextmanager
def opening_its_own_files_alone(name: str) -> Iterator[None]:
    """Raise :class:`StudyError` if the block ends well and read a file beside the model ``name`` that is not its own.

    Python tells of each file that it opens, and not of one that a library opens by itself. Source code is a part of the
    model where it is imported: libraries read that of any function on the stack, for their messages.
    """
    folder, opened, over = own_model.home(name, Path.cwd()).resolve(), dict[str, None](), False
    before = {*sys.modules}

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and not over and isinstance(arguments[0], (str, bytes, os.PathLike)) and _reads(arguments):
            opened[os.fsdecode(arguments[0])] = None

    sys.addaudithook(note)
    try:
        yield
    finally:
        over = True  # a hook stays
    own = {file.resolve() for file in own_model.files(name, Path.cwd())}
    modules = [sys.modules[module] for module in {*sys.modules} - before]
    imported = [file for module in modules if (file := getattr(module, "__file__", None))]
    data = [one for one in opened if not one.endswith((".py", ".pyc"))]
    read = [path for one in (*data, *imported) if own_model.is_part(path := Path(one).resolve(), folder)]
    if own and (others := [path for path in read if path not in own and path.is_file()]):
        raise StudyError(
            key="model.name",
            value=name,
            why=f"it reads {others[0].relative_to(folder)}, which is not in the key of its runs",
            allowed="files of a package that holds the model, or whose path stands as a text in its module",
        )


def _reads(arguments: tuple[Any, ...]) -> bool:
    """Return whether a file is opened so that what was in it can be read."""
    flags = arguments[2]
    return isinstance(flags, int) and flags & os.O_ACCMODE != os.O_WRONLY and not flags & os.O_TRUNC
