"""Pairs of runs of one seed: planted weights are compared within a setting and a seed, and nowhere else."""

from study.analysis.analysis import analyse
from study.analysis.caveats.reproduced import Reproduced
from study.artifacts.checked import Records
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from tests.conftest import tiny_plan
from tests.timings import table
from tests.unit.analysis.found import only
from tests.unit.analysis.planted import with_measured
from tests.unit.artifacts.test_records import make_record

DETERMINISTIC = "training.deterministic"
PLAN = tiny_plan(factors={DETERMINISTIC: [False, True]}, curve=None, null_control=True, replicates=3)


def planted(plan: Plan, number: int) -> Record:
    """A run whose weights follow from its block if it is deterministic; else two second ones differ."""
    run = plan.runs[number]
    levels = run.setting.levels
    differs = not levels[DETERMINISTIC] and levels["control"] == "second" and run.block > 1
    record = make_record(plan, number).model_copy(update={"seed": run.block})
    return with_measured(record, trained_sha256=f"{run.block}{' and another' * differs}")


def found(records: dict[str, Record]) -> list[Reproduced]:
    return only(Reproduced, analyse(PLAN, table(PLAN, records), Records(included=records)).warnings)


def test_the_pairs_of_one_seed_are_counted_for_each_setting() -> None:
    (caveat,) = found({run.name: planted(PLAN, number) for number, run in enumerate(PLAN.runs)})
    counts = {one.setting.levels[DETERMINISTIC]: (one.equal, one.pairs, one.deterministic) for one in caveat.settings}
    assert counts == {False: (1, 3, False), True: (3, 3, True)}


def test_records_without_a_checksum_or_another_run_of_their_seed_tell_nothing() -> None:
    assert found({run.name: make_record(PLAN, number) for number, run in enumerate(PLAN.runs)}) == []
    firsts = [number for number, run in enumerate(PLAN.runs) if run.setting.levels["control"] == "first"]
    assert found({PLAN.runs[number].name: planted(PLAN, number) for number in firsts}) == []
