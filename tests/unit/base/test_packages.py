"""The versions of installed packages, by what their installer wrote."""

import platform
from pathlib import Path

import pytest

from study.base.packages import distributions, version, versions
from tests.conftest import plant_package

PLATFORM = platform.python_version()


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which packages count as installed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_package_counts_with_all_that_it_asks_for_here_and_with_the_interpreter(planted: Path) -> None:
    plant_package(
        planted, "Top", "1.0", "Low_Er>=2", "kit[gpu]", "absent", 'windows; sys_platform == "win32"',
        'tested; extra == "test"', "in no form that [is read",
    )  # fmt: skip
    plant_package(planted, "low-er", "2.0", "top")
    plant_package(planted, "kit", "3.0", 'driver; extra == "gpu"', 'other; extra == "cpu"')
    for name in ("windows", "tested", "driver", "other"):
        plant_package(planted, name, "4.0")
    found = {"python": PLATFORM, "top": "1.0", "low-er": "2.0", "kit": "3.0", "driver": "4.0"}
    assert versions(["Top"]) == found
    assert {name: version(name) for name in found} == found
    assert versions(["absent"]) == {"python": PLATFORM}
    assert version("absent") is None


def test_a_module_is_found_in_its_package_whatever_that_is_called(planted: Path) -> None:
    assert distributions(["PIL.Image", "numpy", "numpy.typing", "yaml", "nowhere"]) == ["pillow", "numpy", "PyYAML"]
    assert distributions(["onnx"]) == ["onnx", "onnxscript"]
