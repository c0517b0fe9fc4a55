"""The files that a module needs, by its imports."""

import platform
from pathlib import Path

import pytest

from study.base.files import PACKAGE
from study.base.imports import closure, distributions, imported, version, versions
from tests.conftest import plant_package

FILES = {
    "pack/__init__.py": "import pack.never\nif TYPE_CHECKING:\n    import pack.types\n",
    "pack/a.py": "import os, numpy\nfrom pack.sub.b import f\n",
    "pack/sub/__init__.py": "def lazy():\n    import pack.lazy\n",
    "pack/sub/b.py": "def f():\n    from pack import c\n    from pack.sub import text\n",
    "pack/sub/words.csv": "a,b\n",
    "pack/c.py": "import pack.a\nclass C:\n    import pack.d\n",
    "pack/d.py": "import typing\nif typing.TYPE_CHECKING:\n    import pack.types\nelse:\n    import pack.e\n",
    "numpy.py": "import pack.alone\n",
} | dict.fromkeys([f"pack/{name}.py" for name in ("never", "types", "e", "lazy", "alone", "sub/deep/__init__")], "")
FILES |= dict.fromkeys([f"pack/sub/{name}" for name in ("pages/page.html", ".hidden", "deep/more.csv")], "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def names(folder: Path, module: str) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in closure(module, folder)}


def test_the_closure_holds_what_functions_import_and_the_data_of_the_packages(folder: Path) -> None:
    assert names(folder, "pack.a") == {
        "pack/__init__.py", "pack/never.py", "pack/a.py", "pack/sub/__init__.py", "pack/sub/b.py", "pack/c.py",
        "pack/d.py", "pack/e.py", "pack/lazy.py", "pack/sub/words.csv", "pack/sub/pages/page.html",
    }  # fmt: skip


def test_the_functions_of_a_package_count_only_if_it_is_imported_itself(folder: Path) -> None:
    (folder / "pack/sub/b.py").write_text("")
    assert names(folder, "pack.a") == {
        "pack/__init__.py", "pack/never.py", "pack/a.py", "pack/sub/__init__.py", "pack/sub/b.py",
        "pack/sub/words.csv", "pack/sub/pages/page.html",
    }  # fmt: skip


def test_a_file_that_is_no_python_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def\nimport os")
    assert imported(tmp_path / "broken.py") == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a\nX = 1\ndef", ["a"]),
        ("from a import (\n    b,\n    c,\n)\nX = (1\n", ["a", "a.b", "a.c"]),
        ("import a\ndef f():\n    import b; import c\n    return 1\n", ["a", "b", "c"]),
        ("try:\n    import a\nexcept ImportError:\n    pass\n", ["a"]),
        ("import a\nTEXT = '''\nimport no\n'''\n", ["a"]),
        ("import a\n# import no\nX = 1\n", ["a"]),
        ("from a import \\\n    b\nX = 1\n", ["a", "a.b"]),
        ("if 1: import a, b  # c\nX = 1\n", ["a", "b"]),
        ("from a import (b, # )\n    c)\nX = 1\n", ["a", "a.b", "a.c"]),
        ("import_ = 1\n", []),
        ("", []),
    ],
)
def test_imports_are_those_of_the_whole_text_though_little_more_than_the_imports_is_read(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    (tmp_path / "module.py").write_text(text)
    assert imported(tmp_path / "module.py") == names


def test_no_module_imports_more_than_what_is_read_of_it(tmp_path: Path) -> None:
    for file in PACKAGE.rglob("*.py"):
        whole = tmp_path / "whole.py"
        whole.write_bytes(file.read_bytes() + b"# import\n")  # read to its end, where the word stands
        assert imported(file) == imported(whole), file


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
