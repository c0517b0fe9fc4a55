"""A claimed optimal batch size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from study.analysis.answers.curve import CurveFit, fit_curve
from study.analysis.published.claims import Claim, agrees
from study.analysis.stats.log_model import DIFFERENCE, SIGNIFICANCE, fit_log_model
from study.analysis.stats.optimum import Optimum, may_be_fastest, optimum_of
from study.analysis.words import listed, number, plain
from study_extras.claims.printed import NO_NOISE, Examined, Printed, notes, ratio, used

Tables = Mapping[str, Sequence[Printed]]
"""The times of each published run over the batch sizes, by the name of its table."""


def examine_optimum(claim: Claim, shares: Sequence[Printed], times: Sequence[Printed]) -> Examined:
    """Return a claimed optimum beside the one that the times of the study's runs determine.

    ``shares`` are the claim: the percentages of the best speed that one table prints beside its times.
    """
    best = max(shares, key=lambda row: row.value)
    runs = [row for row in times if row.batch_size is not None]
    tables = {name: [row for row in runs if row.table == name] for name in dict.fromkeys(row.table for row in runs)}
    size = f"{best.batch_size:g}"
    given: list[str] = []
    verdict = "Too few times are printed beside it: it cannot be checked."
    if len({row.batch_size for row in tables.get(best.table, [])}) > 1:
        found = _found(tables)
        given += [_shares(best, shares, tables), *(_depth(name, rows) for name, rows in tables.items())]
        given += [*_apart(size, tables), *_laws(found), *_fastest(found.optimum), *notes(runs)]
        verdict = _verdict(size, tables, found)
    return Examined(
        claim,
        tuple(given),
        verdict,
        gives="of the fastest's speed",
        used=tuple(
            used(row, f"{100 * ratio([_least(rows).value], [row.value]).value:.1f}%")
            for rows in tables.values()
            for row in rows
        ),
    )


@dataclass(frozen=True)
class _Found:
    """The published runs, analysed as runs measured here are."""

    alone: dict[str, CurveFit]
    together: CurveFit
    optimum: Optimum | None


def _found(tables: Tables) -> _Found:
    """Fit each table alone, and all together, where each table is a block: one start for all of its batch sizes."""
    runs = [row for rows in tables.values() for row in rows]
    levels = [f"{row.batch_size:g}" for row in runs]
    model = fit_log_model([row.value for row in runs], levels, [row.table for row in runs])
    together, optimum = _fit(runs), optimum_of(model)
    may = may_be_fastest(optimum, together.differs_p) if optimum else []
    optimum = optimum.model_copy(update={"indistinguishable": may}) if optimum else None
    return _Found({name: _fit(rows) for name, rows in tables.items()}, together, optimum)


def _fit(runs: Sequence[Printed]) -> CurveFit:
    return fit_curve([row.batch_size or 0 for row in runs], [row.value for row in runs], [row.table for row in runs])


def _least(rows: Sequence[Printed]) -> Printed:
    return min(rows, key=lambda row: row.value)


def _shares(best: Printed, shares: Sequence[Printed], tables: Tables) -> str:
    """Return a sentence on whether the printed shares follow from the times printed beside them."""
    times = {row.batch_size: row for row in tables.get(best.table, []) if row.source == best.source}
    wrong = [
        f"{plain(row.value)}% at {row.batch_size:g}"
        for row in shares
        if row.batch_size not in times or not agrees(row, times[best.batch_size], times[row.batch_size], unit=0.01)
    ]
    if wrong:
        return f"The printed times do not give {listed(wrong)}."
    return f"The printed times give the {len(shares)} printed shares, within rounding."


def _depth(name: str, rows: Sequence[Printed]) -> str:
    """Return a sentence on how far the fastest point lies below the ends of its curve, and below the next."""
    fastest, *others = sorted(rows, key=lambda row: row.value)
    ordered = sorted(rows, key=lambda row: row.batch_size or 0)
    ends = [f"{number(end.value - fastest.value)} s below {end.batch_size:g}" for end in (ordered[0], ordered[-1])]
    first = f"In the {name} {fastest.batch_size:g} is the fastest, {plain(fastest.value)} s: {listed(ends)}"
    if others[0] in (ordered[0], ordered[-1]):
        return f"{first}, the ends of the curve; {others[0].batch_size:g} is the next fastest."
    next_one = f"{number(others[0].value - fastest.value)} s below {others[0].batch_size:g}, the next fastest"
    return f"{first}, the ends of the curve, and {next_one}."


def _nearest_end(rows: Sequence[Printed]) -> float:
    """Return the depth of a U in seconds: how far the fastest point lies below the lower of the two ends."""
    ordered = sorted(rows, key=lambda row: row.batch_size or 0)
    return min(ordered[0].value, ordered[-1].value) - _least(rows).value


def _gaps(tables: Tables) -> dict[str, float]:
    """Return the seconds between two runs at each batch size; empty unless there are two runs."""
    if len(tables) != 2:
        return {}
    one, other = ({f"{row.batch_size:g}": row.value for row in rows} for rows in tables.values())
    return {size: abs(one[size] - other[size]) for size in one if size in other}


def _apart(size: str, tables: Tables) -> list[str]:
    """Return sentences on how far two runs of the same settings differ, against the depth of the curve."""
    found = _gaps(tables)
    if not found:
        return []
    first, second = tables
    runs = [row for rows in tables.values() for row in rows]
    # The batch sizes are the blocks here: what is compared is the two runs.
    model = fit_log_model([row.value for row in runs], [row.table for row in runs], [row.batch_size for row in runs])
    shift = model.ratio(second, first)
    interval = f" (95%: {number(shift.low)} to {number(shift.high)})" if shift.low and shift.high else ""
    depths = [_nearest_end(rows) for rows in tables.values()]
    wider = sum(gap > max(depths) for gap in found.values())
    return [
        f"The two runs differ by {number(min(found.values()))} to {number(max(found.values()))} s a point (median "
        f"{number(median(found.values()))} s; {number(found[size])} s at {size}): at {wider} of {len(found)} batch "
        f"sizes by more than the {number(max(depths))} s by which the fastest lies below the nearer end of its curve.",
        f"Over all batch sizes the {second}'s times are {number(shift.value)} times the {first}'s{interval}.",
    ]


def _laws(found: _Found) -> list[str]:
    """Return the verdict on the curve of each run, and of all together."""
    alone: dict[str, list[str]] = {}
    for name, fit in found.alone.items():
        without = sum(law.aicc is None for law in fit.models.values())
        few = f" {fit.observations} points are too few to weigh {without} of the {len(fit.models)} laws."
        alone.setdefault(fit.verdict.text() + few * bool(without), []).append(f"the {name}")
    sentences = [f"Of {listed(names)} alone: {text}" for text, names in alone.items()]
    fit = found.together
    if len(found.alone) > 1 and fit.differs_p is not None:
        power = "" if fit.power.reported else " They do not determine the exponent of the published power law."
        sentences.append(f"Together, each run a block (p = {number(fit.differs_p)}): {fit.verdict.text()}{power}")
    return sentences


def _fastest(optimum: Optimum | None) -> list[str]:
    """Return a sentence on the batch sizes that may be the fastest."""
    if optimum is None:
        return ["The data do not show which batch size is the fastest: none was run again."]
    most, share = max(optimum.best_probability.items(), key=lambda item: item[1])
    likely = f"{most} is the fastest with probability {share:.2f}"
    if most in optimum.indistinguishable and len(optimum.indistinguishable) > 1 and share < 1 - SIGNIFICANCE:
        likely += ", which is less than the 95% that would rule the others out"
    return [f"{listed(optimum.indistinguishable)} may be the fastest (95%): by the noise of the means {likely}."]


def _verdict(size: str, tables: Tables, found: _Found) -> str:
    """Return a sentence on whether the claimed batch size is the one that the times determine."""
    sizes = len(found.together.points.sizes)
    if found.optimum is None or found.together.differs_p is None:
        return f"Not established: {size} is the smallest of {sizes} single times. {NO_NOISE}."
    first = sum(f"{_least(rows).batch_size:g}" == size for rows in tables.values())
    seen = f"{size} is the fastest in {first} of {len(tables)} runs"
    may = found.optimum.indistinguishable
    if found.together.differs_p >= DIFFERENCE:
        return (
            f"Not established: {seen}, but together their times do not separate the batch sizes (p = "
            f"{number(found.together.differs_p)}): {listed(may)} may be the fastest. {NO_NOISE}: "
            f"what is known of it comes from setting the {len(tables)} runs beside each other."
        )
    if may == [size]:
        return f"Supported: {seen}, and no other of the {sizes} may be the fastest (95%)."
    word = "Not established" if size in may else "Contradicted"
    return f"{word}: {seen}, and {listed(may)} may be the fastest (95%)."
