"""The base of every model that is read from a file."""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """No unknown key, no silent conversion, no change after it was checked."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
