"""What pytest gets: budgets of tests, and `pytest --jax-profile`.

`@pytest.mark.jax_budget(max_compiles=3)`, and `jax_budget` in the settings: only what is built
while the test itself runs counts, not what its fixtures build. Of the marks of a test, its class,
its module and the settings, the nearest one gives each limit, among those for the same `functions`;
a limit of None lifts one from further away.

`--jax-profile` records what the tests make JAX build, and names the test of each build. Under
pytest-xdist every worker has a file of its own in the profile's folder. This file imports next to
nothing where that is not asked for.
"""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Generator, Mapping
from typing import Any

import pytest
from _pytest.outcomes import Failed

import harness
from harness.errors import HarnessError, UsageError
from harness.profiles.budgets.limits import NAMES, unknown

OPTION = "jax_profile"
PLUGIN = "harness-jax-profile"

MARK = "jax_budget"
OPTIONS = ("functions", "each")
HELP = (
    "jax_budget(max_compiles=3, max_traces=..., functions=..., each=...): fail the test when JAX "
    "builds more in it; see harness.budget."
)


class OverBudget(harness.BudgetExceeded, Failed):
    """A test built more than it may: shown by its text alone, its traceback is the harness's."""

    def __init__(self, text: str, over: Any = ()) -> None:
        harness.BudgetExceeded.__init__(self, text, over)
        self.msg = text
        self.pytrace = False

    def __str__(self) -> str:
        return str(self.msg)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--jax-profile`, and declare the setting."""
    parser.getgroup("jax-harness").addoption(
        "--jax-profile",
        dest=OPTION,
        nargs="?",
        const="",
        default=None,
        metavar="FOLDER",
        help="Record what the tests make JAX trace, lower and compile, in a folder that is empty "
        "or new (--jax-profile=FOLDER; profile-YYYYMMDD-HHMMSS without one), and summarize it.",
    )
    parser.addini(
        MARK,
        "What JAX may build in each test, a limit a line: max_compiles = 30. See harness.budget.",
        type="linelist",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, check the setting, and begin to record where that is asked for.

    Raises:
        pytest.UsageError: if the setting is not understood.
    """
    config.addinivalue_line("markers", HELP)
    try:
        if settings := _settings(config):
            _made(settings, MARK)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None
    asked = config.getoption(OPTION)
    if asked is None or config.option.help or config.pluginmanager.has_plugin(PLUGIN):
        return
    # Loaded where it is asked for: pytest loads this file in every run.
    from harness.profiles import pytest_recording

    config.pluginmanager.register(pytest_recording.begin(config, asked), PLUGIN)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Run a test within its budgets."""
    __tracebackhide__ = True
    raised: BaseException | None = None
    try:
        with contextlib.ExitStack() as stack:
            for one in budgets_of(item):
                stack.enter_context(one)
            try:
                return (yield)
            except BaseException as error:
                raised = error
                raise
    except harness.BudgetExceeded as error:
        if error is raised:
            raise
        raise OverBudget(str(error), error.over) from None
    except HarnessError as error:  # a mark that is not understood, a JAX that is not known
        if error is raised:
            raise
        wrong = str(error)
    pytest.fail(wrong, pytrace=False)


def budgets_of(item: pytest.Item) -> list[contextlib.AbstractContextManager[Any]]:
    """Return the budgets of a test: one for each choice of functions.

    Raises:
        UsageError: if a mark is not understood.
    """
    sources: list[Mapping[str, Any]] = [{}]
    where = f"{MARK} of {item.nodeid}"
    for mark in item.iter_markers(MARK):  # the nearest first
        if mark.args:
            raise UsageError(
                f"{where}: limits are given by name, such as {MARK}(max_compiles=3); got "
                f"{mark.args[0]!r}."
            )
        if not any(name in NAMES for name in mark.kwargs):
            _known(mark.kwargs, where)
            raise UsageError(f"{where} limits nothing; give it a limit such as max_compiles=3.")
        sources.append(mark.kwargs)
    sources.append(_settings(item.config))
    merged: dict[str, dict[str, Any]] = {}
    for source in filter(None, sources):
        _known(source, where)
        options = {name: source[name] for name in OPTIONS if name in source}
        into = merged.setdefault(repr(sorted(options.items())), {**options})
        for name, value in source.items():
            into.setdefault(name, value)
    return [
        _made(one, where)
        for one in merged.values()
        if any(one.get(name) is not None for name in NAMES)
    ]


def _made(source: Mapping[str, Any], where: str) -> contextlib.AbstractContextManager[Any]:
    given = {name: source[name] for name in (*NAMES, *OPTIONS) if name in source}
    return harness.budget(**given, where=where)


def _settings(config: pytest.Config) -> dict[str, Any]:
    lines = config.getini(MARK)
    try:
        settings = tomllib.loads("\n".join(lines))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"The setting {MARK} is not understood: {error}. Write a limit a line, such as "
            "max_compiles = 30."
        ) from None
    _known(settings, f"The setting {MARK}")
    return settings


def _known(source: Mapping[str, Any], where: str) -> None:
    for name in source:
        if name not in (*NAMES, *OPTIONS):
            raise UsageError(unknown(where, name, (*NAMES, *OPTIONS)))
