"""The tests of extras have the environment, the shared folder and an empty folder as all others."""

from tests.conftest import SHARED, here  # noqa: F401 - pytest finds the fixture here
