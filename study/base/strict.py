"""The base of every model that is read from a file."""

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """A model that refuses unknown keys, converts no type silently, and cannot be changed after validation."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
