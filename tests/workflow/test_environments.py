"""Two locks that differ in one package, in the same blocks on the host: equal, and with a planted
slowdown."""

import sysconfig
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from study.base.environment import own
from tests.workflow.conftest import Checkout

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("environments")]

STEP_SECONDS = 0.05
SLOW = f"""
import importlib.machinery, sys, time

class Slow:
    def find_spec(self, name, path, target=None):
        if name != "torch.optim.sgd":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module
        def patched(module):
            execute(module)
            step = module.SGD.step
            def slow(self, *arguments, **options):
                time.sleep({STEP_SECONDS})
                return step(self, *arguments, **options)
            module.SGD.step = slow
        spec.loader.exec_module = patched
        return spec

sys.meta_path.insert(0, Slow())
"""


def lock_with(folder: Path, version: str, code: str = "") -> None:
    """Write a lock with one package in this version, which may run code where Python starts."""
    name = f"planted-{version}-py3-none-any.whl"
    described = f"planted-{version}.dist-info"
    with zipfile.ZipFile(folder / name, "w") as wheel:
        wheel.writestr("planted.py", code)
        wheel.writestr("planted.pth", "import planted\n")
        wheel.writestr(
            f"{described}/METADATA", f"Metadata-Version: 2.1\nName: planted\nVersion: {version}\n"
        )
        wheel.writestr(
            f"{described}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{described}/RECORD", "")
    digest = sha256((folder / name).read_bytes()).hexdigest()
    text = (
        f"--no-index\n--find-links {folder.as_uri()}\nplanted=={version} --hash=sha256:{digest}\n"
    )
    (folder / f"with-{version}.lock").write_text(text, encoding="utf-8")


def test_two_locks_are_compared_in_the_same_blocks(plain: Checkout) -> None:
    if not (own().tools / "bin" / "uv").exists():
        pytest.skip("uv is not here: `make env` brings it")
    for version, code in {"1.0": "", "2.0": SLOW}.items():
        lock_with(plain.root, version, code)
    # Each environment holds the planted package alone; the training stack is the tests' own.
    plain.variables["PYTHONPATH"] = sysconfig.get_path("purelib")
    (plain.root / "results" / "environments").mkdir(parents=True)
    (plain.root / "results" / "environments" / ".uv").symlink_to(own().tools)
    locks = ["with-1.0.lock", "with-2.0.lock"]
    plain.study("tiny", factors={"environment": locks}, curve=None, replicates=2)
    said = plain.good("overrides={training.optimizer: sgd}")
    assert all(f"environment {lock}" in said for lock in locks)
    records = sorted(plain.measured().values(), key=lambda record: record.position)
    assert [record.outcome for record in records] == ["ok"] * 4
    assert [record.block for record in records] == [1, 1, 2, 2]
    assert [{record.settings.environment for record in records[i : i + 2]} for i in (0, 2)] == [
        {*locks}
    ] * 2
    assert len({record.software.lock_sha256 for record in records}) == 2
    for record in records:
        assert record.measurement
        steps = (
            sum(epoch.images for epoch in record.measurement.epochs)
            // record.settings.training.batch_size
        )
        planted = record.settings.environment == locks[1]
        assert steps > 0
        assert record.measurement.fit_seconds >= STEP_SECONDS * steps * planted
    assert str(plain.root) not in "".join(record.model_dump_json() for record in records)
    assert "nothing is left" in plain.good("overrides={training.optimizer: sgd}")
