"""A target is one object in one file, and one line in the registry."""

import pytest

from harness.targets import TARGETS, Target, find


def test_an_incomplete_target_fails_where_it_is_made_with_what_it_lacks():
    with pytest.raises(TypeError, match="'lacking'"):
        Target("mine", "cpu")
    with pytest.raises(TypeError, match="the target 'mine' lacks description"):
        Target("mine", "cpu", lambda: None, compile_only="My GPU")


def test_every_target_is_found_by_its_name():
    for name, target in TARGETS.items():
        assert find(name) is target
