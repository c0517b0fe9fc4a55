"""What a module imports, and the packages that this needs."""

import platform
from pathlib import Path

import pytest

from study.base.imports import distributions, imported, version, versions
from tests.conftest import plant_package


def test_a_file_that_is_no_python_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def\nimport os")
    assert imported(tmp_path / "broken.py") == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from a import (\n    b,\n    c,\n)\nX = 1\n", ["a", "a.b", "a.c"]),
        ("import typing\nif typing.TYPE_CHECKING:\n import a\nelse:\n import b\n", ["typing", "b"]),
        ("class C:\n    import a\n    def f(self):\n        import b\n", ["a", "b"]),
        ("import a\ndef f():\n    import b; import c\n    return 1\n", ["a", "b", "c"]),
        ("try:\n    import a\nexcept ImportError:\n    pass\n", ["a"]),
    ],
)
def test_imports_are_found_wherever_they_stand(tmp_path: Path, text: str, names: list[str]) -> None:
    (tmp_path / "module.py").write_text(text)
    assert imported(tmp_path / "module.py") == names


PLATFORM = platform.python_version()


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which packages count as installed."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_package_counts_with_all_that_it_asks_for_here_and_with_the_interpreter(
    planted: Path,
) -> None:
    others = [
        'windows; sys_platform == "win32"',
        'tested; extra == "test"',
        "in no form that [is read",
    ]
    plant_package(planted, "Top", "1.0", "Low_Er>=2", "kit[gpu]", "absent", *others)
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
    found = distributions(["PIL.Image", "numpy", "numpy.typing", "yaml", "nowhere"])
    assert found == ["pillow", "numpy", "PyYAML"]
