"""The tests of extras have the environment, and the shared folder, of all others."""

import tests.conftest as tests_conftest

assert tests_conftest.SHARED
here = tests_conftest.here
