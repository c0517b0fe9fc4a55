"""``python -m study <verb>``: one verb for each stage of the pipeline. Each verb imports only what it needs."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from study.base.errors import StudyError

ROOT = Path(__file__).parent.parent
STUDIES = ROOT / "config" / "studies"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m study", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    stages = (_plan, _engine, _image, _archive, _dataset, _weights, _run, _timings, _fit, _figures, _claims, _report)
    for add in (*stages, _retry, _schema):
        add(verbs)
    options = parser.parse_args(arguments)
    try:
        code = int(options.call(options) or 0)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `python -m study plan x | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except StudyError as error:
        _fail(str(error), getattr(options, "log", None))
        return 1
    except KeyboardInterrupt:
        return 130


def _fail(message: str, log: Path | None) -> None:
    print(f"error: {message}", file=sys.stderr)
    if log:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(f"error: {message}\n")


def _say(message: str, log: Path | None) -> None:
    print(message, file=sys.stderr, flush=True)
    if log:
        with log.open("a", encoding="utf-8") as file:
            file.write(message + "\n")


Verbs = Any  # argparse has no public name for what add_subparsers returns


def _verb(verbs: Verbs, name: str, call: Any, text: str, log: bool = True) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    parser.set_defaults(call=call)
    if log:
        parser.add_argument("--log", type=Path, help="file to which messages are also written")
    return parser


def _plan(verbs: Verbs) -> None:
    parser = _verb(verbs, "plan", plan, "Print the runs of a study: name, factors, block, position.", log=False)
    parser.add_argument("study")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a key of the study")
    parser.add_argument("--device", action="append", metavar="DEVICE", help="cpu or cuda, instead of the study's")
    parser.add_argument("--reduced", action="store_true", help="use the study's keys for a machine with two CPU cores")


def plan(options: argparse.Namespace) -> None:
    """Print the table of runs."""
    from study.artifacts import plan
    from study.base import strict_yaml
    from study.host.plan import workflow

    overrides = {}
    for item in options.set:
        key, equals, value = item.partition("=")
        if not equals:
            raise StudyError(f"--set: {item!r} is not allowed: give key=value")
        overrides[key] = value
    config = strict_yaml.read(STUDIES.parent / "config.yaml") | {"studies": [options.study]}
    config["overrides"] = (config.get("overrides") or {}) | overrides
    if options.device:
        config["devices"] = options.device
    if options.reduced:
        config["size"] = "reduced"
    print(plan.table(workflow.plans_for(config, STUDIES, Path("results"))[0]))


def _engine(verbs: Verbs) -> None:
    parser = _verb(verbs, "engine", engine, "Print the engine of the runs: docker, ... or none.", log=False)
    parser.add_argument("snakemake", nargs="*", help="after --: Snakemake's arguments; only --config is used")


def engine(options: argparse.Namespace) -> None:
    """Print the engine to standard output, and the reason to standard error."""
    from study.base import strict_yaml
    from study.config.load import read_selection
    from study.host.engine import place

    config = strict_yaml.read(STUDIES.parent / "config.yaml")
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", "-C", nargs="*", default=[])
    for item in parser.parse_known_args(options.snakemake)[0].config:
        key, _, value = item.partition("=")
        config[key] = strict_yaml.parse(value, f"--config {key}")
    chosen = place.choose(read_selection(config), fetch=True)
    print(chosen.reason, file=sys.stderr)
    print(chosen.engine)


def _image(verbs: Verbs) -> None:
    parser = _verb(verbs, "image", image, "Build, load or pull the image of a device, and test it once.")
    parser.add_argument("plan", type=Path)
    parser.add_argument("device", choices=["cpu", "cuda"])
    parser.add_argument("--results", type=Path, default=Path("results"))


def image(options: argparse.Namespace) -> None:
    """Build, load or pull one image, and write its description."""
    from study.artifacts import image as image_file
    from study.artifacts.plan import read_plan
    from study.base import devices
    from study.base.files import write_if_changed
    from study.base.processes import end_with_parent
    from study.host.engine import bring

    end_with_parent()
    planned = read_plan(options.plan)
    if planned.engine == "none":
        raise StudyError(f"images: runs execute on the host ({planned.engine_reason}), which needs no image")
    wanted = planned.images[options.device]
    log = options.log or options.results / "logs" / "images" / f"{options.device}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"image {options.device}: {wanted.reference} (a first build takes minutes)", file=sys.stderr, flush=True)
    with log.open("w", encoding="utf-8") as file:
        gpu = options.device == "cuda" and devices.absent("cuda") is None
        made = bring.make(planned.engine, wanted, options.results, file, gpu)
    write_if_changed(image_file.path_of(options.results, options.device), made.model_dump_json(indent=1))
    how = f"built in {made.build_seconds:.0f} s" if made.build_seconds else "already there"
    _say(f"image {options.device}: {made.id[:19]}, {how}, Python {made.python}", options.log)


def _archive(verbs: Verbs) -> None:
    parser = _verb(verbs, "archive", archive, "Save a device's image for a site without a registry.", log=False)
    parser.add_argument("device", choices=["cpu", "cuda"])
    parser.add_argument("--results", type=Path, default=Path("results"))


def archive(options: argparse.Namespace) -> None:
    """Write the image of a device to ``results/images/<device>.tar``."""
    from study.artifacts import image as image_file
    from study.host.engine import bring

    made = image_file.read(image_file.path_of(options.results, options.device))
    target = options.results / "images" / f"{options.device}.tar"
    bring.save(made.engine, made, target)
    print(f"{target}: on another machine, name it as images: {{{options.device}: {target.name}}}")


def _dataset(verbs: Verbs) -> None:
    parser = _verb(verbs, "dataset", dataset, "Draw, verify or download a dataset, and write its manifest.")
    parser.add_argument("plan", type=Path)
    parser.add_argument("dataset", help="name of the dataset in the plan")
    parser.add_argument("--results", type=Path, default=Path("results"))


def dataset(options: argparse.Namespace) -> None:
    """Write the manifest of one dataset."""
    from study.artifacts.manifest import read_manifest
    from study.artifacts.plan import read_plan
    from study.base.processes import end_with_parent
    from study.host.steps.dataset import DOWNLOADED, make, one_search

    end_with_parent()
    planned = read_plan(options.plan)
    run = next(run for run in planned.runs if run.dataset == options.dataset)
    source = run.settings.dataset.source
    with one_search(options.results, source):
        if planned.engine != "none" and source in DOWNLOADED:
            _inside("dataset", planned, run, options.dataset, options)
            made = read_manifest(options.results / "data" / options.dataset / "manifest.json")
        else:
            made = make(options.plan, options.dataset, options.results)
    left_out = f", {len(made.left_out)} left out" if made.left_out else ""
    _say(
        f"data: {made.source}, {made.train_images} images to train and {made.valid_images} to validate, "
        f"{len(made.classes)} classes{left_out}",
        options.log,
    )


def _weights(verbs: Verbs) -> None:
    parser = _verb(verbs, "weights", weights, "Decide where a model's weights come from, once per study.")
    parser.add_argument("plan", type=Path)
    parser.add_argument("weights", help="name of the decision in the plan")
    parser.add_argument("--results", type=Path, default=Path("results"))


def weights(options: argparse.Namespace) -> None:
    """Write the decision for one model."""
    from study.artifacts.plan import read_plan
    from study.artifacts.weights import read_weights
    from study.base.files import write_if_changed
    from study.base.processes import end_with_parent

    end_with_parent()
    planned = read_plan(options.plan)
    # The model is tried once, on the smallest images of the study: a network may be too deep for those.
    run = min(
        (run for run in planned.runs if run.weights == options.weights), key=lambda run: run.settings.dataset.image_size
    )
    target = options.results / planned.name / "weights" / f"{options.weights}.json"
    if planned.engine == "none":
        from study.data.preflight import expected_classes
        from study.training.models.pretrained import decide

        model, images = run.settings.model, run.settings.dataset
        decision = decide(
            model.name,
            model.weights,
            run.settings.seed,
            options.results / "weights",
            classes=expected_classes(images),
            channels=images.channels,
            image_size=images.image_size,
        )
        write_if_changed(target, decision.model_dump_json(indent=1))
    else:
        _inside("weights", planned, run, options.weights, options)
        decision = read_weights(target)
    _say(f"weights of {decision.model}: {decision.kind} ({decision.reason})", options.log)


def _inside(verb: str, plan: Any, run: Any, name: str, options: argparse.Namespace) -> None:
    """Execute a step that needs the training stack in the image that the runs use."""
    from study.host.steps.in_image import in_a_container

    log = options.log or options.results / "logs" / f"{verb}-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:
        in_a_container(verb, plan, run, name, options.results, file)


def _run(verbs: Verbs) -> None:
    parser = _verb(verbs, "run", run, "Measure one planned run in a fresh process, and write its record.")
    parser.add_argument("plan", type=Path)
    parser.add_argument("run")
    parser.add_argument("--session", type=int, default=1)
    parser.add_argument("--counter", default="run", help="progress label for the terminal, e.g. 'run 3 of 10'")
    parser.add_argument("--results", type=Path, default=Path("results"))


def run(options: argparse.Namespace) -> None:
    """Measure one run."""
    from study.artifacts.plan import read_plan
    from study.base.processes import end_with_parent
    from study.host.steps.launch import launch

    end_with_parent()
    planned = read_plan(options.plan)
    record = launch(
        planned,
        planned.run(options.run),
        options.results,
        options.session,
        options.log or Path("results") / "logs" / f"{options.run}.log",
        options.counter,
    )
    told = f"{record.measurement.fit_seconds:.2f} s" if record.measurement else record.message
    _say(f"{options.counter}: {record.run}: {record.outcome}, {told}", options.log)


def _timings(verbs: Verbs) -> None:
    parser = _verb(verbs, "timings", timings, "Gather the records of a plan into one table.")
    parser.add_argument("plan", type=Path)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)


def timings(options: argparse.Namespace) -> None:
    """Write the table of timings."""
    from study.analysis.table.files import read_all, read_telemetry, write_csv
    from study.analysis.table.rows import table
    from study.artifacts.plan import read_plan

    planned = read_plan(options.plan)
    records = read_all(planned, options.records)
    sampled = read_telemetry(planned, records, options.records.parent.parent)
    write_csv(table(planned, records, sampled), options.output)


def _fit(verbs: Verbs) -> None:
    parser = _verb(
        verbs, "fit", fit, "Fit laws to the times of a study (PLAN TIMINGS) or of any table (FILE.csv --x --y)."
    )
    parser.add_argument("plan", type=Path, help="a study's plan.json, or any CSV file")
    parser.add_argument("timings", type=Path, nargs="?", help="a study's timings.csv; not given with a CSV file")
    parser.add_argument("--x", default="batch_size", help="column on the horizontal axis (default: batch_size)")
    parser.add_argument("--y", default="seconds", help="column of times in seconds (default: seconds)")
    parser.add_argument("--block", help="column that names rows measured together, such as a replicate")
    parser.add_argument("--output", type=Path, help="JSON file to write; required for a study")


def fit(options: argparse.Namespace) -> None:
    """Write the analysis of one study, or print the analysis of a table."""
    if options.timings is None:
        return _fit_table(options)
    if options.output is None:
        raise StudyError("--output: missing: name the file to write")
    from study.analysis.stats.analysis import analyse
    from study.analysis.table.files import read_csv
    from study.artifacts.plan import read_plan
    from study.base.files import write_if_changed

    planned = read_plan(options.plan)
    analysis = analyse(planned.study, read_csv(options.timings, planned.study))
    options.output.unlink(missing_ok=True)  # so that the file gets a new time even if nothing changed
    write_if_changed(options.output, analysis.model_dump_json(indent=1))


def _fit_table(options: argparse.Namespace) -> None:
    from study.analysis.stats.any_table import as_json, fit_table, read_table
    from study.analysis.wording.any_table import as_text
    from study.base.files import write_if_changed

    curve, optimum = fit_table(read_table(options.plan, options.x, options.y, options.block))
    print(as_text(curve, optimum, options.x))
    if options.output:
        write_if_changed(options.output, json.dumps(as_json(curve, optimum), indent=1, allow_nan=False))


def _figures(verbs: Verbs) -> None:
    parser = _verb(verbs, "figures", figures, "Draw the figures of a study as SVG and PNG.")
    parser.add_argument("plan", type=Path)
    parser.add_argument("timings", type=Path)
    parser.add_argument("fit", type=Path)
    parser.add_argument("--output", type=Path, required=True, help="folder of the figures")


def figures(options: argparse.Namespace) -> None:
    """Draw every figure of one study."""
    from study.analysis.figures import draw_all
    from study.analysis.stats.analysis import read_analysis
    from study.analysis.table.files import read_csv
    from study.artifacts.plan import read_plan

    planned = read_plan(options.plan)
    draw_all(planned, read_csv(options.timings, planned.study), read_analysis(options.fit), options.output)


def _claims(verbs: Verbs) -> None:
    parser = _verb(
        verbs, "claims", claims, "Print how far the published figures support each published claim.", log=False
    )
    parser.add_argument("--study", help="only the claims of this published study")


def claims(options: argparse.Namespace) -> None:
    """Print each claim with the result of its examination."""
    from study.analysis.published.claims import as_text, chosen, examine
    from study.analysis.published.table import read_published

    print(as_text(chosen(examine(read_published()), options.study)))


def _report(verbs: Verbs) -> None:
    parser = _verb(verbs, "report", report, "Render one self-contained page about every selected study.")
    parser.add_argument("studies", nargs="+", help="names of the studies")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--output", type=Path, required=True)


def report(options: argparse.Namespace) -> None:
    """Write the report."""
    from study.analysis.report import render

    render(options.studies, options.results, options.output)


def _retry(verbs: Verbs) -> None:
    parser = _verb(
        verbs, "retry", retry, "Move records aside so that their runs are made again. Nothing is deleted.", log=False
    )
    parser.add_argument("study")
    parser.add_argument(
        "--outcome",
        action="append",
        choices=["failed", "unavailable", "out_of_memory", "ok"],
        help="outcome of the records to move (repeatable; default: failed and unavailable)",
    )
    parser.add_argument(
        "--weights",
        action="store_true",
        help="instead: look for ImageNet weights again, and move runs with random weights aside",
    )
    parser.add_argument("--results", type=Path, default=Path("results"))


def retry(options: argparse.Namespace) -> None:
    """Move the chosen records to the folder ``superseded``."""
    from study.artifacts.record import Record
    from study.artifacts.shelf import move_aside, retire
    from study.artifacts.weights import fell_back, read_weights
    from study.host.plan.workflow import lock_results

    folder = options.results / options.study / "records"
    if not folder.is_dir():
        known = sorted(path.parent.name for path in options.results.glob("*/records"))
        raise StudyError(f"retry: no records of a study {options.study!r}; allowed: {', '.join(known) or 'none'}")
    outcomes = set(options.outcome or ["failed", "unavailable"])

    def chosen(record: Record) -> bool:
        if options.weights:
            return record.weights is not None and fell_back(record.weights)
        return record.outcome in outcomes

    with lock_results(options.results):
        moved = retire(folder, chosen)
        if options.weights:
            for path in sorted((folder.parent / "weights").glob("*.json")):
                if fell_back(read_weights(path)):
                    moved.append(move_aside(path).name)
    for name in moved:
        print(f"moved to superseded: {name}")
    print(f"{len(moved)} file(s) moved; the next start makes them again")


def _schema(verbs: Verbs) -> None:
    _verb(verbs, "schema", schema, "Write workflow/schemas and config/README.md from the models.", log=False)


def schema(options: argparse.Namespace) -> None:
    """Write every generated file."""
    from study.schema import generated_files

    for path, text in generated_files().items():
        target = ROOT / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(path)
