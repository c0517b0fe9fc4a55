"""What people may be told of this machine: text without names and paths, and a pseudonym."""

import getpass
import hashlib
import os
import re
import socket
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

# A network address stays; an absolute path loses its folders.
PATH = re.compile(
    r"(?P<url>\b(?!file:|unix:)\w+://\S+)|(?<![\w.])(?:[A-Za-z]:)?[\\/](?:[^\s'\":,;()<>|\\/]+[\\/])+"
)


def anonymous(text: str, *known: str | None) -> str:
    """Return ``text`` without absolute paths, host and user.

    ``known`` paths are cut to their base names, even if a space in them hides where they end.
    """
    for path in filter(None, known):
        full = Path(path).expanduser()
        for form in {str(full), str(full.absolute()), str(path)}:
            parent = str(Path(form).parent)
            if len(parent) > 1:
                text = text.replace(parent + os.sep, "")
    for folder in (str(Path.cwd()), _known(Path.home), tempfile.gettempdir()):
        if len(folder) > 1:
            text = text.replace(folder + os.sep, "").replace(folder, "…")
    text = without_folders(text)
    for name in (socket.gethostname(), _known(getpass.getuser)):
        if name:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "…", text)
    return text


def without_folders(text: str) -> str:
    """Return ``text`` with every absolute path cut to its base name; an address keeps its path."""
    return PATH.sub(lambda match: match.group("url") or "", text)


def plain(value: Any) -> Any:
    """Return a value of JSON in which each absolute path is cut to its base name."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if not isinstance(value, str):
        return value
    before, equals, path = value.rpartition("=")  # --directory=/a folder/b
    cut = Path(path).name if path.startswith(("/", "~")) else path
    return without_folders(f"{before}{equals}{cut}")


def _known(find: Callable[[], object]) -> str:
    try:
        return str(find())
    except (RuntimeError, OSError, KeyError):  # a container's user may be a number without a name
        return ""


@cache
def node() -> str | None:
    """Return a pseudonym of this machine: eight hex digits, the same for all its users; None if
    nothing tells it.

    It is a hash of the system's `machine-id`, which is random, of the host's name, for machines
    that were copied from one image have one id, and of the name that SLURM gives the node. Nobody
    can tell the name from it.
    """
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            identity = Path(path).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if identity:
            words = [identity, socket.gethostname(), os.environ.get("SLURMD_NODENAME", "")]
            return hashlib.sha256("\0".join(["study", *words]).encode()).hexdigest()[:8]
    return None
