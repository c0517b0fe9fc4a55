"""A published claim beside what this study measured."""

from study.analysis.published.claims.printed import Claim, plain
from study.analysis.stats.analysis import Analysis, Group
from study.analysis.stats.contrasts import Ratio
from study.analysis.words import listed, number, on_device, setting_words
from study.config.study import Study


def measured_here(claim: Claim, study: Study, analysis: Analysis) -> list[str]:
    """Return sentences on what a study of the claim's document found; none where it cannot speak to the claim."""
    if claim.study != (study.claims_of or study.published):
        return []
    if claim.ratio is not None and study.contrast == "device":
        return [
            _ratio(claim.ratio, ratio) for ratio in analysis.ratios if (ratio.slower, ratio.faster) == ("cpu", "cuda")
        ]
    if claim.batch_size is not None and study.curve and study.curve.x == "training.batch_size":
        return [_optimum(claim.batch_size, group) for group in analysis.groups if len(group.levels) > 1]
    return []


def _ratio(claimed: float, ratio: Ratio) -> str:
    setting = setting_words(ratio.at)
    value, low, high = ratio.ratio.value, ratio.ratio.low, ratio.ratio.high
    found = f"Measured here{f' at {setting}' if setting else ''}: {number(value)}"
    if low is None or high is None:
        return f"{found}, too few clean runs for an interval: {plain(claimed)} is neither confirmed nor contradicted."
    verdict = "lies within it" if low <= claimed <= high else "lies outside it"
    return f"{found} (95%: {number(low)} to {number(high)}); {plain(claimed)} {verdict}."


def _optimum(size: float, group: Group) -> str:
    """Return a sentence on a claimed optimum in one group, by the levels that may be the fastest."""
    name, place = f"{size:g}", on_device(group.label)
    place = f"Measured here: {place[0].lower()}{place[1:]}"
    if name in group.unfair:
        return f"{place} {name} did not learn as others did, and is no candidate."
    if group.best is None or group.optimum is None or name not in {level.label for level in group.levels}:
        return f"{place} it cannot be said."
    others = [level for level in group.indistinguishable if level != name]
    if name not in group.indistinguishable:
        return f"{place} {name} is not the fastest; {listed(others)} may be (95%)."
    rest = f", and so may {listed(others)}" if others else " and no other"
    return f"{place} {name} may be the fastest{rest} (95%)."
