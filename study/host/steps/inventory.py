"""What an image holds, as a software bill of materials in CycloneDX 1.5 (cyclonedx.org)."""

import json
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from study.artifacts.image import Image, read
from study.artifacts.layout import Results
from study.base.errors import StudyError
from study.base.files import write_if_changed
from study.config.sections import Device
from study.host.engine import client, lifetime
from study.host.engine.engines import engine

LIST = """
python -m pip list --format=freeze --disable-pip-version-check | sed 's/^/pypi /'
command -v dpkg-query >/dev/null && dpkg-query --show --showformat 'deb ${Package}==${Version}\\n'
true
"""
"""Prints a line for each package of Python and of Debian: its kind, name and version."""


def write_inventory(device: Device, results: Path) -> Path:
    """Ask the image of ``device`` what it holds, write that beside its description, and return the path."""
    files, said = Results(results), StringIO()
    image = read(files.image(device))
    with lifetime.scratch_folder(results) as scratch:
        command = ["sh", "-c", LIST]
        end, last = lifetime.enter(engine(image.engine), image.run_as, command, scratch, [], said, f"image {device}")
    packages = [line.split(" ", 1) for line in said.getvalue().splitlines() if line.startswith(("pypi ", "deb "))]
    if end.code or not packages:
        raise StudyError(f"images.{device}: the image does not say what it holds: {client.last_words(last)}")
    target = files.inventory(device)
    write_if_changed(target, json.dumps(bill(image, packages), indent=1))
    return target


def bill(image: Image, packages: list[list[str]]) -> dict[str, Any]:
    """Return the bill of an image with these packages, each a kind (``pypi`` or ``deb``) and ``name==version``."""
    components = []
    for kind, package in packages:
        name, _, version = package.partition("==")
        at = f"pkg:{'deb/debian' if kind == 'deb' else kind}/{quote(name)}@{quote(version)}"
        components.append({"type": "library", "bom-ref": at, "name": name, "version": version, "purl": at})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": image.request.reference, "version": image.id}},
        "components": components,
    }
