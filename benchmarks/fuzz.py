"""What strange input may do: be read, or end in a sentence. A traceback is a defect.

Each edge is a place where a user's file or words come in. ``tests/unit/test_fuzz.py`` sends cases
through each, always the same ones: with `make test-all` five to 25 times as many.
"""

import copy
import json
import stat
import warnings
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from itertools import chain, product
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import pandas as pd
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from study.analysis.analysis import result_of
from study.artifacts.bundle import unpack
from study.artifacts.layout import Results
from study.artifacts.telemetry import from_parquet
from study.base.errors import StudyError
from study.base.files import file_sha256, remove_tree
from study.cli import main
from study.config.load import read_selection, read_study
from study.config.settings import setting_keys
from study.host.engine.engine_choice import EngineChoice
from study.host.plan.make import make_plan
from study.verbs.declare import VERBS, load
from tests.examples import EXAMPLE

HERE: dict[str, str | None] = {"cpu": None, "cuda": "no GPU here"}
SPEEDUP = EXAMPLE / "photographs-speedup"
STUDY: dict[str, Any] = {
    "title": "Tiny",
    "question": "Is it read?",
    "dataset": {"source": "generated", "images": 20, "image_size": 32},
    "model": {"name": "replications.gpu_lab.networks:small_net", "weights": "none"},
    "training": {"freeze_epochs": 0, "epochs": 1, "batch_size": 4},
    "factors": {"device": ["cpu"], "training.batch_size": [4, 8]},
    "only": [{"training.batch_size": 4, "replicates": 2}],
    "replicates": 1,
    "curve": {"x": "training.batch_size", "y": "fit_seconds"},
    "reduced": {"training.epochs": 1},
}
# No slash and no NUL: what is fuzzed stays in the folder of the fuzzer, and no command line can
# hold a NUL.
TEXT = st.text(st.characters(exclude_characters="/\0"), max_size=20)
STORED = TEXT.filter(str.isprintable)
"""Text that a Parquet file can hold: without halves of surrogate pairs."""
NUMBERS = st.one_of(
    st.integers(-3, 3000),
    st.integers(),
    st.floats(),
    st.sampled_from([10**30, 10**400, 2**63, -(2**63), 1e308, 5e-324, 1e-320]),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXT)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)
YAML = st.one_of(
    TEXT,
    st.sampled_from(
        [
            "[" * 3000,
            "{" * 300,
            "2026-13-45",
            "0b_",
            "0x_",
            "9" * 5000,
            "0x" + "f" * 5000,
            ".inf",
            ".nan",
            "1:99:99",
            "- a",
        ]
        + [
            f"!!{tag} {value}"
            for tag, value in product(
                ("int", "float", "bool", "timestamp", "set", "omap", "binary"), "x1"
            )
        ]
        + [
            "&a [*a]",
            "&a {<<: *a}",
            "'",
            '"\\ud800"',
            "? a",
            "{a: 1, a: 2}",
            "!x y",
            "%",
            "--- a\n--- b",
            "\t",
            "a: b: c",
        ]
    ),
    st.integers().map(str),
    st.floats().map(str),
    VALUES.map(lambda value: str(yaml.safe_dump(value, default_flow_style=True))),
)


def _paths(tree: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the place of each value in nested lists and mappings: the keys that lead to it."""
    items: Iterable[tuple[Any, Any]] = tree.items() if isinstance(tree, dict) else ()
    if isinstance(tree, list):
        items = enumerate(tree)
    below = [*chain(*(_paths(value, (*before, key)) for key, value in list(items)[:40]))]
    return [before, *below] if before else below


@st.composite
def changed(draw: st.DrawFn, tree: Any) -> Any:
    """Return ``tree`` with up to three of its values replaced, removed or given twice."""
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(st.sampled_from(_paths(tree) or [("new",)]))
        inner = tree
        for key in above:
            inner = inner[key]
        how = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if how == "remove":
            del inner[last]
        elif isinstance(inner, dict):
            inner[last if how == "replace" else draw(TEXT)] = draw(VALUES)
        else:
            inner[last] = draw(VALUES)
        if not tree:
            break
    return tree


@st.composite
def study_texts(draw: st.DrawFn) -> str:
    """Return the text of a study's file with some of its lines, or a value in one, replaced."""
    lines = yaml.safe_dump(STUDY, sort_keys=False).splitlines()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        key, colon, _ = lines[at].partition(":")
        text = draw(YAML)
        lines[at] = text if draw(st.booleans()) else f"{key}{colon} {text}"
    return "\n".join(lines)


def read_and_plan(config: dict[str, Any], folder: Path) -> None:
    """Read the study ``tiny`` in ``folder`` as a start does, and plan it unless it has many
    runs."""
    study = read_study("tiny", [folder], read_selection({"studies": ["tiny"]} | config))
    if study.replicates < 10 and all(len(levels) < 10 for levels in study.factors.values()):
        make_plan("tiny", study, EngineChoice("none", ""), HERE)


def study_file(text: str, folder: Path) -> None:
    """Read a study's file, in full and reduced."""
    (folder / "tiny.yaml").write_text(text, encoding="utf-8", errors="surrogatepass")
    for size in ("full", "reduced"):
        read_and_plan({"size": size}, folder)


def configuration(config: dict[str, Any], folder: Path) -> None:
    """Read a selection with its overrides."""
    (folder / "tiny.yaml").write_text(yaml.safe_dump(STUDY), encoding="utf-8")
    read_and_plan(config, folder)


def _one_run(results: Path) -> tuple[Path, Path]:
    """Write the plan of one run of the example into a folder of results, and return its record and
    its samples."""
    plan = json.loads((SPEEDUP / "plan.json").read_text(encoding="utf-8"))
    plan["runs"] = [run for run in plan["runs"] if run["settings"]["device"] == "cuda"][:1]
    folder, name = results / SPEEDUP.name, f"{plan['runs'][0]['name']}.{plan['runs'][0]['key']}"
    for part in ("records", "telemetry"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    record, samples = folder / "records" / f"{name}.json", folder / "telemetry" / f"{name}.parquet"
    record.write_bytes((SPEEDUP / "records" / record.name).read_bytes())
    samples.write_bytes((SPEEDUP / "telemetry" / samples.name).read_bytes())
    return record, samples


def record(tree: Any, folder: Path) -> None:
    """Analyse a run with this record."""
    path, _ = _one_run(folder)
    path.write_text(json.dumps(tree), encoding="utf-8")
    result_of(Results(folder), SPEEDUP.name)


def telemetry(change: "bytes | tuple[str, Any]", folder: Path) -> None:
    """Analyse a run with these samples: other bytes, or another column. The record names them."""
    record, samples = _one_run(folder)
    if isinstance(change, bytes):
        samples.write_bytes(change)
    else:
        column, value = change
        frame = from_parquet(samples.read_bytes())
        frame[column] = pd.Series(
            [value] * len(frame), dtype=object if isinstance(value, str) else None
        )
        frame.drop(columns=[column] if value is None else []).to_parquet(
            samples, engine="pyarrow", index=False
        )
    named = json.loads(record.read_text(encoding="utf-8")) | {
        "telemetry_sha256": file_sha256(samples)
    }
    record.write_text(json.dumps(named), encoding="utf-8")
    result_of(Results(folder), SPEEDUP.name)


def said(words: list[str]) -> int:
    """Return the exit code of a command line, which ends in silence or in one line."""
    errors = StringIO()
    with redirect_stdout(StringIO()), redirect_stderr(errors):
        try:
            code = main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    if code:
        assert code in (1, 2)
        assert errors.getvalue().startswith("error: ")
        assert errors.getvalue()[:-1].isprintable()
    return code


def bundle(entries: list[tuple[str, int, bytes, bytes]], folder: Path) -> None:
    """Unpack an archive with entries of any name and kind, in which bytes were changed; what is
    beside it stays."""
    archive, target = folder / "in" / "a.zip", folder / "in" / "out"
    archive.parent.mkdir(exist_ok=True)
    with warnings.catch_warnings(), ZipFile(archive, "w") as zipped:
        warnings.simplefilter("ignore")  # a name that is there twice
        for name, kind, content, _ in [*BUNDLED, *entries]:
            entry = ZipInfo(name)
            entry.external_attr = (kind | 0o644) << 16
            zipped.writestr(entry, content)
    for _, _, before, after in entries:
        archive.write_bytes(
            archive.read_bytes().replace(before, after) if before else archive.read_bytes()
        )
    try:
        unpack(archive, target)
    except StudyError:
        assert not target.exists()
        raise
    finally:
        assert {path.name for path in archive.parent.iterdir()} <= {"a.zip", "out"}
        assert not any(path.is_symlink() for path in target.rglob("*"))
        remove_tree(target)


def command_line(words: list[str], folder: Path) -> None:
    """Give any words to the command line, in a folder with a few files."""
    _one_run(folder)
    (folder / "text").write_text("hello", encoding="utf-8")
    said(words)


HARMLESS = [name for name in VERBS if name not in ("start", "tune")]
"""The verbs that write nothing into the checkout, and start nothing."""
ARGUMENTS = chain(*(load(name).arguments for name in VERBS))
OPTIONS = sorted({word for word in chain(*(words for words, _ in ARGUMENTS)) if word[0] == "-"})
WORDS = st.one_of(
    st.sampled_from(
        [
            "plan.json",
            "text",
            "records",
            "telemetry",
            "gone",
            ".",
            "..",
            "",
            "-",
            "--",
            "cpu",
            "quickstart",
        ]
    ),
    st.sampled_from([*OPTIONS, "seed=1", "=", "training.batch_size=[1", "-h"]),
    YAML.filter(lambda text: "/" not in text and "\0" not in text),
    TEXT,
)


@dataclass(frozen=True)
class Edge:
    """A place where input comes in: its cases, and what is done with each in a folder that may be
    written."""

    cases: st.SearchStrategy[Any]
    call: Callable[[Any, Path], None]


def _example(folder: str) -> Path:
    """Return the file of the example's first run on a GPU."""
    return next(path for path in sorted((SPEEDUP / folder).iterdir()) if "-cuda-r1." in path.name)


def _short_record() -> Any:
    """Return the record of that run with its first steps alone: the rest are like them, and take
    time to read."""
    tree = json.loads(_example("records").read_text(encoding="utf-8"))
    del tree["measurement"]["steps"][40:]
    return tree


SAMPLES = _example("telemetry").read_bytes()
BUNDLED = [(name, stat.S_IFREG, b"{}", b"") for name in ("plan.json", "tiny/plan.json")]
ENTRIES = st.tuples(
    st.lists(
        st.sampled_from(["tiny", "..", ".", "", "records", "C:", "a\\b", "plan.json", "\0"])
        | STORED,
        max_size=4,
    ).map("/".join),
    st.sampled_from([stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO, 0]),
    st.binary(max_size=9),
    st.binary(max_size=9),
)
EDGES = {
    "study files": Edge(study_texts(), study_file),
    "overrides": Edge(
        st.one_of(
            st.fixed_dictionaries(
                {
                    "overrides": st.dictionaries(
                        st.sampled_from([*setting_keys(), *STUDY, "factors.training.epochs"])
                        | TEXT,
                        YAML | VALUES,
                        min_size=1,
                        max_size=3,
                    )
                }
            ),
            st.dictionaries(
                st.sampled_from(
                    ["size", "devices", "images", "overrides", "quiet_wait_seconds", "warm_up_run"]
                )
                | TEXT,
                YAML | VALUES,
                min_size=1,
                max_size=2,
            ),
        ),
        configuration,
    ),
    "records": Edge(changed(_short_record()), record),
    "telemetry": Edge(
        st.one_of(
            st.binary(max_size=50),
            st.integers(0, len(SAMPLES)).map(lambda size: SAMPLES[:size]),
            st.tuples(
                st.sampled_from(list(pd.read_parquet(_example("telemetry")))) | STORED,
                st.none() | st.floats() | STORED,
            ),
        ),
        telemetry,
    ),
    "bundles": Edge(st.lists(ENTRIES, max_size=3), bundle),
    "command lines": Edge(
        st.builds(
            lambda verb, words: [verb, *words],
            st.sampled_from(HARMLESS) | TEXT,
            st.lists(WORDS, max_size=6),
        ),
        command_line,
    ),
}


def check(name: str, folder: Path, cases: int) -> None:
    """Send cases through an edge, in ``folder``. Raise the first error that is no
    :class:`StudyError` in one line."""
    edge = EDGES[name]

    @settings(
        max_examples=cases,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(edge.cases)
    def ends_in_a_sentence(case: Any) -> None:
        try:
            edge.call(case, folder)
        except StudyError as error:
            assert str(error).isprintable()

    ends_in_a_sentence()
