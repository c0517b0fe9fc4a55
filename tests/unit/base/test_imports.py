"""The files that a module needs, by its imports."""

from pathlib import Path

import pytest

from study.base.imports import closure, imported

FILES = {
    "pack/__init__.py": "import pack.never\nif TYPE_CHECKING:\n    import pack.types\n",
    "pack/never.py": "",
    "pack/types.py": "",
    "pack/a.py": "import os, numpy\nfrom pack.sub.b import f\n",
    "pack/sub/__init__.py": "def lazy():\n    import pack.lazy\n",
    "pack/sub/b.py": "def f():\n    from pack import c\n    from pack.sub import text\n",
    "pack/sub/words.csv": "a,b\n",
    "pack/sub/pages/page.html": "",
    "pack/sub/.hidden": "",
    "pack/sub/deep/__init__.py": "",
    "pack/sub/deep/more.csv": "",
    "pack/c.py": "import pack.a\nclass C:\n    import pack.d\n",
    "pack/d.py": "import typing\nif typing.TYPE_CHECKING:\n    import pack.types\nelse:\n    import pack.e\n",
    "pack/e.py": "",
    "pack/lazy.py": "",
    "pack/alone.py": "",
    "numpy.py": "import pack.alone\n",
}


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
    (tmp_path / "broken.py").write_text("import os\ndef")
    assert imported(tmp_path / "broken.py") == []
