"""The build step of the wheel: what a start needs beside the package lies in it as ``study_home``.

``ROOT`` in ``study/base/files.py`` is that folder where the package is installed.
"""

from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

LOCKS = ("requirements.lock", "requirements-uv.lock")
HELD = (*LOCKS, "config", "docker", "extras", "profiles", "replications", "workflow")


def held() -> Iterator[str]:
    """Yield the path of each file that the wheel holds beside the package."""
    for name in HELD:
        for path in sorted([Path(name), *Path(name).rglob("*")]):
            if path.is_file() and not {"__pycache__", "certificates", "tests"} & {*path.parts}:
                yield path.as_posix()


class BuildWithHome(build_py):
    """Copies what is held, unless the package is only linked to its checkout."""

    def get_source_files(self) -> list[str]:
        """Return the files that an archive of the sources holds."""
        return [*super().get_source_files(), *held()]

    def run(self) -> None:
        """Build the package, and its home beside it."""
        super().run()
        for name in () if self.editable_mode else held():
            target = Path(self.build_lib, "study_home", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(name, str(target))


setup(cmdclass={"build_py": BuildWithHome})
