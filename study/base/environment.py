"""An environment of Python packages, made from locks by uv, which pip brings once.

It needs Python alone, for it makes what everything else needs: ``python -m study.base.environment
FOLDER LOCK``.
"""

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from study.base.devices import OLDEST, TorchBuild
from study.base.errors import StudyError, say

CHECKOUT = Path(__file__).resolve().parents[2]
HOST, ALL = CHECKOUT / "requirements-host.lock", CHECKOUT / "requirements.lock"
UV = CHECKOUT / ("" if HOST.is_file() else "study_home") / "requirements-uv.lock"
"""The lock of uv: the checkout's, or that of an installed package."""
LOCKS = {
    "requirements-host.lock": (
        "the host side without torch",
        "about 280 MB to download, 0.7 GB on the disk, in less than a minute",
    ),
    "requirements.lock": (
        "all that runs need",
        "about 3400 MB to download, up to 7 GB on the disk, in a few minutes",
    ),
}
"""What the locks that a start installs hold, and what they take."""
OF_TORCH = re.compile(
    r"(torch|torchvision|torchcodec|triton|cuda-[\w-]+|nvidia-(?!ml-py)[\w-]+)(\[.*\])?=="
)
"""The start of a lock's line with torch, or with what belongs to its build."""
SITES = (
    "import json, site, sysconfig; print(json.dumps([*site.getsitepackages(), "
    "sysconfig.get_path('purelib')]))"
)
NEEDED = ("pydantic", "snakemake", "psutil")
"""What every verb needs: where it is missing, nothing of the host side is installed."""


class Environment(NamedTuple):
    """An environment in a folder of its own; ``tools`` is the folder in which the uv that serves it
    is kept."""

    folder: Path
    tools: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """The folder of its packages."""
        return next(self.folder.glob("lib/python*/site-packages"), self.folder)

    @property
    def maker(self) -> str:
        """The interpreter that made it, whose torch it may take."""
        note = self.folder / ".python"
        return (
            note.read_text(encoding="utf-8")
            if note.is_file()
            else getattr(sys, "_base_executable", sys.executable)
        )

    def make(self) -> None:
        """Make it without packages, if it is not there. A Python without ensurepip makes one
        without pip.

        Raise :class:`StudyError` if this Python cannot make one.
        """
        if self.python.exists():
            return
        try:
            venv.create(
                self.folder,
                with_pip=importlib.util.find_spec("ensurepip") is not None,
                symlinks=True,
            )
            (self.folder / ".python").write_text(sys.executable, encoding="utf-8")
        except (OSError, subprocess.CalledProcessError) as error:
            raise StudyError(
                f"{self.folder}: {sys.executable} cannot make an environment there: {error}"
            ) from None

    @property
    def takes_installed_torch(self) -> bool:
        """Whether its torch is that of the interpreter that made it."""
        return self._link.is_file()

    @property
    def _link(self) -> Path:
        """The file that lets it import what is installed for its maker, after all that is its
        own."""
        return self.packages / "installed_torch.pth"

    def holds(self, lock: Path) -> bool:
        """Return whether it was made of this lock as it is now."""
        note = self._note(lock)
        return note.is_file() and note.read_text(encoding="utf-8") == _sha256(lock)

    def _note(self, lock: Path) -> Path:
        return self.folder / f".{lock.name}.sha256"

    def install(
        self, lock: Path, installed_torch: bool = False, target: Path | None = None
    ) -> None:
        """Install what ``lock`` names, each package checked by its hash, into the environment or
        the folder ``target``.

        With ``installed_torch`` torch, and what belongs to its build, comes from the interpreter
        that made it. Raise :class:`StudyError` if uv cannot do it.
        """
        self.make()
        asked, (what, takes) = lock, LOCKS.get(lock.name, (lock.name, "which may take minutes"))
        if installed_torch:
            check_installed_torch(self.maker)
            asked = self.folder / ".without-torch.lock"
            asked.write_text(without_torch(lock.read_text(encoding="utf-8")), encoding="utf-8")
            what, takes = f"{what}, but not torch", "1 GB on the disk in less than a minute"
        count = len(re.findall(r"^\S+==", asked.read_text(encoding="utf-8"), re.MULTILINE))
        say(f"installing {what}: {count} packages, {takes}, into {self.folder} ...")
        self._install(asked, target)
        if installed_torch:
            done = subprocess.run(
                [self.maker, "-c", SITES], capture_output=True, text=True, check=True
            )
            lines = [
                f"import site; site.addsitedir({folder!r})\n"
                for folder in dict.fromkeys(json.loads(done.stdout))
            ]
            self._link.write_text("".join(lines), encoding="utf-8")
        elif lock == ALL:
            self._link.unlink(missing_ok=True)
        if self == own():  # Snakemake looks for the logger plugin among the packages
            (self.packages / "checkout.pth").write_text(f"{CHECKOUT}\n", encoding="utf-8")
        self._note(lock).write_text(_sha256(lock), encoding="utf-8")
        say(f"installed {what}")

    def _install(self, lock: Path, target: Path | None) -> None:
        words = ["pip", "install", "--quiet", "--system-certs", "--no-deps", "--require-hashes"]
        words += ["--python", str(self.python), "-r", str(lock)]
        words += ["--target", str(target)] if target else []
        # Each package is compiled now: where PYTHONDONTWRITEBYTECODE is set, every process would do
        # it again.
        done = subprocess.run([self._uv(), *words], env={"UV_COMPILE_BYTECODE": "1"} | os.environ)
        if done.returncode:
            raise StudyError(
                f"{self.folder}: not all packages can be installed: uv's lines above say why (it "
                "does not read pip.conf: UV_INDEX_URL names a mirror)"
            )

    def _uv(self) -> Path:
        """Return the path of uv, which is brought at its first use."""
        uv = self.tools / "bin" / "uv"
        if not uv.exists():
            options = ["--quiet", "--disable-pip-version-check", "--upgrade", "--require-hashes"]
            options += ["--target", str(self.tools), "-r", str(UV)]
            subprocess.run([*self._pip(), "install", *options])
        if not uv.exists():
            raise StudyError(
                f"{self.tools}: pip could not bring uv, which installs the packages: its "
                "lines say why"
            )
        return uv

    def _pip(self) -> list[str]:
        """Return the command of a pip for it: its own, or that of the interpreter that made it.

        Raise :class:`StudyError` if neither has one.
        """
        for command in (
            [str(self.python), "-m", "pip"],
            [self.maker, "-m", "pip", "--python", str(self.python)],
        ):
            if not subprocess.run([*command, "--version"], capture_output=True).returncode:
                return command
        raise StudyError(
            f"{self.maker} has no pip to install with; on Debian: apt-get install python3-venv"
        )


def check_installed_torch(python: str) -> None:
    """Raise :class:`StudyError` if no torch is installed for ``python`` that this code runs on."""
    found = TorchBuild.of_python(python)
    if found is None or found.is_old:
        raise StudyError(
            key="--torch",
            value="installed",
            why=f"{python} has {f'torch {found.version}' if found else 'no torch'}",
            allowed=f"lock; installed, with a Python that has torch {OLDEST} or newer",
        )


def without_torch(lock: str) -> str:
    """Return a lock without torch and what belongs to its build. A package is a line with its
    hashes indented below."""
    return "".join(
        one for one in re.split(r"^(?=\S)", lock, flags=re.MULTILINE) if not OF_TORCH.match(one)
    )


def own() -> Environment:
    """Return the environment of this checkout."""
    return Environment(CHECKOUT / ".venv", CHECKOUT / ".uv")


def enter(words: Sequence[str]) -> None:
    """Go on in the checkout's environment, where this Python lacks what is needed; ``study start``
    makes it now.

    End with a line where another verb is called without it.
    """
    if all(importlib.util.find_spec(name) for name in NEEDED):
        return
    there = own()
    if not HOST.is_file() or (list(words[:1]) != ["start"] and not there.holds(HOST)):
        how = (
            "`python -m study start` or `make host` installs it in .venv, whose python is "
            "then the one to call"
        )
        sys.exit(
            f"error: {sys.executable} lacks what `study` needs: "
            f"{how if HOST.is_file() else ', '.join(NEEDED)}"
        )
    try:
        if "--torch=installed" in "=".join(words):
            check_installed_torch(sys.executable)
        if not there.holds(HOST):
            there.install(HOST)
    except StudyError as error:
        sys.exit(f"error: {error}")
    sys.stdout.flush()
    os.execv(there.python, [str(there.python), "-m", "study", *words])  # noqa: S606


def _sha256(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def main() -> None:
    """Make an environment, and install a lock in it."""
    parser = argparse.ArgumentParser(prog="python -m study.base.environment", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("lock", type=Path)
    parser.add_argument(
        "--torch", choices=["lock", "installed"], default="lock", help="where torch comes from"
    )
    parser.add_argument("--target", type=Path, help="folder beside the environment's own packages")
    options = parser.parse_args()
    try:
        there = Environment(options.folder.absolute(), CHECKOUT / ".uv")
        there.install(options.lock.absolute(), options.torch == "installed", options.target)
    except StudyError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
