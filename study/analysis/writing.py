"""The direction of writing: a user's words may run from right to left, and move nothing else on the page."""

import re

CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""What turns the direction of all that follows it, and shows nothing itself."""
LETTER = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
RIGHT_TO_LEFT = re.compile(f"{LETTER}(?:[^A-Za-z]*{LETTER})?")
"""Letters that run from right to left, with what stands between them."""
ISOLATE, END = "\u2068", "\u2069"


def in_place(text: str) -> str:
    """Return a text whose letters from right to left move no others, and whose controls of direction are shown.

    Without it, a number that follows such letters is drawn before them.
    """
    if text.isascii():
        return text
    shown = CONTROLS.sub(lambda control: f"[U+{ord(control.group()):04X}]", text)
    return RIGHT_TO_LEFT.sub(lambda words: f"{ISOLATE}{words.group()}{END}", shown)
