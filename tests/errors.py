"""What a test expects of an error: its fields. The sentences stand in golden files."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import ValidationError

from study.base.errors import UNSET, StudyError


@contextmanager
def refused(key: str, value: Any = UNSET) -> Iterator[StudyError]:
    """Expect an error about ``key``, in one line, and about ``value`` if one is given; yield what
    holds its fields.

    A model that is made by itself raises pydantic's error, whose first one counts.
    """
    error = StudyError("none was raised")
    with pytest.raises((StudyError, ValidationError)) as caught:
        yield error
    raised = (
        caught.value.errors()[0]["ctx"]["error"]
        if isinstance(caught.value, ValidationError)
        else caught.value
    )
    vars(error).update(vars(raised))
    assert error.key == key, raised
    assert value is UNSET or error.value == value, raised
    assert str(raised).isprintable()
