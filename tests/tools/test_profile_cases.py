"""A profile is right about programs of kinds that it once answered wrong."""

from __future__ import annotations

import pytest

from tools.profile_cases.__main__ import judged
from tools.profile_cases.cases import ALL

DEFAULT = ("while_loop_of_lambdas", "jitted_in_an_init", "used_by_its_size", "field_of_options")
"""One of each kind that no other test has."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[] if case.name in DEFAULT else pytest.mark.nightly) for case in ALL],
    ids=lambda case: case.name,
)
def test_a_profile_is_right_about(case):
    if "equinox" in case.run.__code__.co_names:
        pytest.importorskip("equinox")
    if "optax" in case.run.__code__.co_names:
        pytest.importorskip("optax")
    assert judged(case) == []
