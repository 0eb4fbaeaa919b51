"""`pytest --jax-profile`: record what the tests make JAX build, and name the test of each build.

Imports next to nothing where it is not asked for. Under pytest-xdist every worker has a file of its
own in the profile's folder.
"""

from __future__ import annotations

import pytest

OPTION = "jax_profile"
PLUGIN = "harness-jax-profile"

pytest_plugins = ("harness.profiles.pytest_budgets",)
"""Marks and settings for budgets."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--jax-profile`."""
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


def pytest_configure(config: pytest.Config) -> None:
    """Begin to record, where that is asked for."""
    asked = config.getoption(OPTION)
    if asked is None or config.option.help or config.pluginmanager.has_plugin(PLUGIN):
        return
    # Loaded where it is asked for: pytest loads this file in every run.
    from harness.profiles import pytest_recording

    config.pluginmanager.register(pytest_recording.begin(config, asked), PLUGIN)
