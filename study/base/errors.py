"""The one error type that a user is meant to read, and what is said after Ctrl-C."""

INTERRUPTED = "interrupted: each file that is there is whole, and the same command goes on from there"


def printable(text: str) -> str:
    """Return ``text`` in one line: a line break, and what else cannot be printed, is escaped."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


class StudyError(Exception):
    """Bad input, or a machine that cannot serve, as one line: the key, the value and the allowed values."""

    def __str__(self) -> str:
        """Return the message in one line."""
        return printable(super().__str__())
