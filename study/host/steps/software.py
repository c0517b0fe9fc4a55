"""What measured: version, commit, lock, engine and image."""

from study import __version__
from study.artifacts.plan import Plan
from study.artifacts.prepared import Image
from study.artifacts.record import Software
from study.base import checkout
from study.host.plan import keys


def software(plan: Plan, image: Image | None, engine_version: str | None) -> Software:
    """Return the software of a measurement: version, commit, lock, engine, image."""
    return Software(
        study_version=__version__,
        git_commit=checkout.commit(),
        git_dirty=checkout.is_changed(),
        lock_sha256=image.lock_sha256 if image else keys.installed_lock_sha256(),
        engine=plan.engine,
        engine_reason=plan.engine_reason,
        engine_version=engine_version,
        image=image.id if image else None,
        image_digest=image.digest if image else None,
    )
