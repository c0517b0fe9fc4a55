"""What lies beside the core, in ``extras``: it is found by looking there, and the core imports none
of it by name.

The folder ``extras/NAME`` holds the package ``study_NAME``. What it offers is what the package has:
a module ``verbs`` with the verb NAME, a function NAME of the public interface.
"""

import sys
from functools import cache
from importlib import import_module
from types import ModuleType

from study.base.files import ROOT

EXTRAS = ROOT / "extras"


def extras_with(module: str) -> list[str]:
    """Return the names of the extras whose package has this module. Nothing is imported."""
    return sorted(path.parts[-3] for path in EXTRAS.glob(f"*/study_*/{module}.py"))


def load_extra(name: str, module: str = "") -> ModuleType:
    """Return the package of an extra, or a module of it, imported now."""
    folder = str(EXTRAS / name)
    if folder not in sys.path:
        sys.path.append(folder)
    return import_module(f"study_{name}.{module}" if module else f"study_{name}")


@cache
def scheduler() -> ModuleType | None:
    """Return the module ``allocation`` of the first extra that knows a scheduler; None without one:
    then this machine is alone.

    It has ``allocation``, ``nodes_of``, ``end_of_allocation`` and ``requested_resources``, as
    ``study_slurm`` has.
    """
    names = extras_with("allocation")
    return load_extra(names[0], "allocation") if names else None
