"""The table of verbs: each with the module that declares it, as text, so that nothing is imported for another verb."""

from importlib import import_module

from study.verbs.declare import Verb

SHOWN = dict.fromkeys(("start", "plan", "report", "answer", "retry", "fit"), "study.verbs.user")
"""What a user types. The help shows these, and says what each does."""
HIDDEN = dict.fromkeys(("image", "dataset", "weights", "run", "analyse"), "study.verbs.steps")
HIDDEN |= dict.fromkeys(("engine", "archive", "schema"), "study.verbs.upkeep")
"""What the workflow and the Makefile call."""
EXTRAS = dict.fromkeys(("compare", "gate"), "study_extras.compare.verbs")
EXTRAS |= {"tune": "study_extras.tune.verbs"}
EXTRAS |= dict.fromkeys(("bundle", "unbundle"), "study_extras.bundle.verbs")
EXTRAS |= {"claims": "study_extras.claims.verbs"}
EXTRAS |= {"search": "study_extras.search.verbs"}
"""What packages beside the core offer. The help names these; the core imports none of them."""
VERBS = SHOWN | HIDDEN | EXTRAS


def load(name: str) -> Verb:
    """Return the verb of this name. Its module is imported now, and no other verb's."""
    found = getattr(import_module(VERBS[name]), name)
    assert isinstance(found, Verb)
    return found
