"""What measured: version, commit, lock, engine and image."""

import subprocess

from study import __version__
from study.artifacts.image import Image
from study.artifacts.plan import Plan
from study.artifacts.record import Software
from study.base.files import ROOT
from study.host.plan import keys


def software(plan: Plan, image: Image | None, engine_version: str | None) -> Software:
    """Return the software of a measurement: version, commit, lock, engine, image."""
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return Software(
        study_version=__version__,
        git_commit=commit,
        git_dirty=None if commit is None or changed is None else bool(changed),
        lock_sha256=image.lock_sha256 if image else keys.installed_lock_sha256(),
        engine=plan.engine,
        engine_reason=plan.engine_reason,
        engine_version=engine_version,
        image=image.id if image else None,
        image_digest=image.digest if image else None,
    )


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
