"""The container engines by name. The host is no engine."""

from study.base.errors import StudyError
from study.host.engine.apptainer import Apptainer
from study.host.engine.base import Engine
from study.host.engine.docker import Docker
from study.host.engine.podman import Podman

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (Docker(), Podman(), Apptainer())}


def engine(name: str) -> Engine:
    """Return the engine called ``name``. Raise :class:`StudyError` if it is none, such as ``none``, the host."""
    if name not in ENGINES:
        raise StudyError(f"container: {name!r} is not allowed: {', '.join(ENGINES)}")
    return ENGINES[name]
