"""The fit of any table of times, as text for a terminal."""

from study.analysis.stats.curve import CurveFit
from study.analysis.stats.findings import EqualTimes
from study.analysis.stats.optimum import Optimum
from study.analysis.wording.verdict import noise_sentence, verdict_sentence
from study.analysis.words import coefficients, law_formula, listed, number


def as_text(fit: CurveFit, optimum: Optimum | None, name: str) -> str:
    """Return the verdict, the laws, and the levels of column ``name`` that may be the fastest."""
    runs = f"{fit.observations} rows at {fit.batch_sizes} values of {name}"
    spreads = ", ".join(f"{name} {100 * spread:.2g}%" for name, spread in fit.spreads.items())
    lines = [
        verdict_sentence(fit.verdict),
        "",
        f"{runs}. " + (f"Standard deviations: {spreads}." if spreads else "Nothing was measured twice."),
        "",
        f"Laws, by AICc (undefined: too few rows, or values of {name}, for the law's coefficients):",
        "",
        *_laws(fit),
        "",
        *([noise_sentence(fit.noise), ""] if fit.noise else []),
        *_fastest(optimum, name, isinstance(fit.verdict, EqualTimes)),
    ]
    return "\n".join(lines)


def _laws(fit: CurveFit) -> list[str]:
    """Return the table of laws, aligned."""
    rows = [("law", "AICc", "weight", "lack of fit p", "coefficients (95%)")]
    for law, fitted in fit.models.items():
        told = law != "power" or fitted.reported
        rows.append(
            (
                law_formula(law),
                "undefined" if fitted.aicc is None else f"{fitted.aicc:.1f}",
                "-" if fitted.weight is None else f"{fitted.weight:.2f}",
                "-" if fitted.lack_of_fit_p is None else f"{fitted.lack_of_fit_p:.2g}",
                coefficients(fitted.coefficients, fitted.intervals) if told else "no finding",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return ["  " + "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[4]]) for row in rows]


def _fastest(optimum: Optimum | None, name: str, equal: bool) -> list[str]:
    if optimum is None:
        why = "As repeated rows have equal times" if equal else f"Without enough repeated rows at a value of {name}"
        return [f"{why}, the data do not show which is the fastest."]
    return [
        f"May be the fastest (95%): {name} {listed(optimum.indistinguishable)}.",
        *(
            f"  {level}: fastest with probability {share:.2f}, {number(optimum.cost[level])} times the smallest mean"
            for level, share in optimum.best_probability.items()
        ),
    ]
