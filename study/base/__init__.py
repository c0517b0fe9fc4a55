"""The ground that every wing stands on: nothing here knows what a study is.

This file imports nothing at first: one of the user's folder could stand in for it.
"""

import sys


def python_first() -> None:
    """Let Python's own modules come before those of all folders, such as a user's empty
    ``random.py``.

    Of the others the order stays: the user's folder comes before what is installed. Python itself
    imports modules before this is called: each step is told to leave the folder out
    (``PYTHONSAFEPATH``), and has it from here.
    """
    place = next((place for place, entry in enumerate(sys.path) if entry.endswith(".zip")), 0)
    # an archive, a folder, one of extensions
    sys.path[: place + 3] = sys.path[place : place + 3] + sys.path[:place]
    if sys.flags.safe_path:
        from pathlib import Path

        sys.path.insert(3, str(Path.cwd()))


def complete_user() -> None:
    """Give the user a name, a home and a place for caches where the system has none: Snakemake asks
    for all three.

    A container that is started with the number of a user knows no name of it.
    """
    import os
    import pwd
    import tempfile
    from pathlib import Path

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        os.environ.setdefault("USER", f"user-{os.getuid()}")
        home = tempfile.gettempdir()
    if not Path(os.environ.get("HOME", "")).is_absolute():
        os.environ["HOME"] = home
    place = Path(os.environ["HOME"], ".cache")
    if not os.access(
        next(folder for folder in (place, *place.parents) if folder.exists()), os.W_OK
    ):
        os.environ.setdefault(
            "XDG_CACHE_HOME", str(Path(tempfile.gettempdir(), f"cache-{os.getuid()}"))
        )


def plain_matplotlib() -> None:
    """Import matplotlib as it comes: with nothing of the user's variables, folder and home.

    It looks for its settings when it is imported, and in the working folder first.
    """
    import os
    import tempfile
    from contextlib import chdir
    from importlib import import_module

    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as empty, chdir(empty):
        os.environ |= {"MPLBACKEND": "agg", "MPLCONFIGDIR": empty, "MATPLOTLIBRC": empty}
        import_module("matplotlib.style")
        os.environ.clear()
        os.environ.update(before)
