"""The marks, in a pytest of their own."""

from __future__ import annotations

import importlib.metadata
import re
import sys

import pytest

from tests import forks

pytest_plugins = ["pytester"]

PLUGIN = "harness.profiles.pytest_plugin"

TESTS = """
import jax, numpy as np, pytest

pytestmark = pytest.mark.jax_budget(max_compiles=2, max_eager=0)

def many(count):
    function = jax.jit(lambda x: x * 2)
    for size in range(1, count + 1):
        function(np.ones(size, np.float32))

def test_within(): many(2)
def test_over(): many(3)

@pytest.mark.jax_budget(max_compiles=3)
def test_nearest_mark(): many(3)

@pytest.mark.jax_budget(max_compiles=None)
def test_lifted(): many(3)

def other(): pass

@pytest.mark.jax_budget(max_compiles=0, functions="other")
def test_also_other(): many(3)

@pytest.mark.jax_budget(max_compiles=0, functions="test_own.py:manny")
def test_no_such_function(): pass

@pytest.mark.xfail(raises=AssertionError, strict=True)
def test_expected(): many(3)

def test_own_failure():
    many(3)
    raise KeyError("own")

@pytest.fixture
def built(): many(2)
def test_fixtures_are_free(built): many(1)

class TestClass:
    pytestmark = [pytest.mark.jax_budget(max_compiles=1)]
    def test_method(self): many(2)

@pytest.mark.jax_budget(max_lowers=0)
def test_settings_are_nearer_than_nothing(): pass

@pytest.mark.jax_budget(max_compile=1)
def test_typo(): pass
@pytest.mark.jax_budget(3)
def test_position(): pass
@pytest.mark.jax_budget()
def test_nothing(): pass
"""

BUILDS = """
import jax, numpy as np
def test_plain():
    function = jax.jit(lambda x: x * 2)
    function(np.ones(3, np.float32)), function(np.ones(4, np.float32))
"""
INSTALLED = any(
    point.value == PLUGIN for point in importlib.metadata.entry_points(group="pytest11")
)
OPTIONS = ["-q", "--strict-markers", "--strict-config", "-rA", "-p", "no:cacheprovider"]
OPTIONS += [] if INSTALLED else ["-p", PLUGIN]


def test_marks(tmp_path):
    (tmp_path / "test_own.py").write_text(TESTS)
    (tmp_path / "pytest.ini").touch()
    # Where pytest is forked, it has imported the plugin before.
    warnings = ["-W", "error", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    done = forks.run([sys.executable, "-m", "pytest", *OPTIONS, *warnings], cwd=tmp_path)
    code, text = done.returncode, done.stdout + done.stderr
    assert code == 1, text
    passed = re.findall(r"^PASSED test_own.py::test_(\w+)", text, re.MULTILINE)
    free = ["fixtures_are_free", "settings_are_nearer_than_nothing"]
    assert sorted(passed) == sorted(["within", "nearest_mark", "lifted", *free]), text
    for said in (
        "XFAIL test_own.py::test_expected",
        "3 compiles, and jax_budget of test_own.py::test_over allows 2 (max_compiles = 2).",
        "jax_budget of test_own.py::TestClass::test_method allows 1",
        "jax_budget of test_own.py::test_also_other allows 2",
        "functions has 'test_own.py:manny', and no function of this process",
        "Did you mean 'test_own.py:many'?",
        "KeyError: 'own'",
        "jax_budget of test_own.py::test_typo: 'max_compile' is not known",
        "test_position: limits are given by name",
        "test_nothing limits nothing",
    ):
        assert said in text
    assert "guard.py" not in text, "the traceback is the harness's"


@pytest.mark.parametrize(
    ("setting", "code", "said"),
    [
        ("max_compiles = 1", 1, "2 compiles, and jax_budget of test_own.py::test_plain allows 1"),
        ("max_compiles", 4, "The setting jax_budget is not understood"),
        ("max_compile = 3", 4, "The setting jax_budget: 'max_compile' is not known"),
        ("max_compiles = -3", 4, "jax_budget: max_compiles is -3; expected a whole number"),
    ],
)
def test_a_setting_is_the_budget_of_every_test_or_stops_pytest(pytester, setting, code, said):
    pytester.makepyfile(test_own=BUILDS)
    pytester.makeini("[pytest]")
    done = pytester.runpytest_inprocess(*OPTIONS, "-o", f"jax_budget={setting}")
    text = str(done.stdout) + str(done.stderr)
    assert done.ret == code
    assert said in text
    assert "Traceback" not in text
