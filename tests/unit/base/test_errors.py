import pickle

import pytest
from pydantic import ValidationError

from study.base.errors import MOST, StudyError, ValueRefused
from study.base.strict import Strict, explain


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"key": "a.b", "value": 3, "why": "small", "allowed": [4, 5]}, "a.b: 3 is not allowed: small; allowed: 4, 5"),
        ({"source": "study x", "key": "a", "value": "b"}, "study x: a: 'b' is not allowed"),
        ({"key": "a", "value": None, "allowed": "1 to 3"}, "a: None is not allowed; allowed: 1 to 3"),
        ({"key": "a", "value": 1, "context": "with b 2", "why": "no"}, "a: 1 is not allowed with b 2: no"),
        ({"key": "a", "why": "missing; it must be given"}, "a: missing; it must be given"),
        ({"value": 2**70}, "a whole number beyond 64 bits is not allowed"),
        ({"value": "x" * 200}, f"'{'x' * 99}... (202 characters) is not allowed"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_of_its_fields(fields: dict[str, object], line: str) -> None:
    error = StudyError(**fields)  # type: ignore[arg-type]
    assert str(error) == line
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == line and (again.key, again.value) == (error.key, error.value)


class Planted(Strict):
    size: int
    name: str = "x"


def test_what_a_validator_refuses_keeps_its_fields_below_the_section() -> None:
    from pydantic import model_validator

    class Section(Strict):
        size: int

        @model_validator(mode="after")
        def _small(self) -> "Section":
            raise ValueRefused(key="size", value=self.size, why="too large", allowed="1 to 3")

    class Whole(Strict):
        section: Section

    with pytest.raises(ValidationError) as caught:
        Whole.model_validate({"section": {"size": 9}})
    error = explain(caught.value, Whole, "study x")
    assert (error.source, error.key, error.value) == ("study x", "section.size", 9)
    assert (error.why, error.allowed) == ("too large", "1 to 3")
    assert str(error) == "study x: section.size: 9 is not allowed: too large; allowed: 1 to 3"


def test_several_errors_are_one_line_of_at_most_twenty() -> None:
    with pytest.raises(ValidationError) as caught:
        Planted.model_validate({"size": "x", **{f"key_{place}": 1 for place in range(MOST + 3)}})
    error = explain(caught.value, Planted, "x")
    assert (
        error.key == "size"
        and "key_0: 1 is not allowed: unknown key; allowed: size, name" in str(error)
    )
    assert str(error).endswith("; and 4 more")
