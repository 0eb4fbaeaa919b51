"""Arms of a live comparison are described by commits, interpreters, variables, targets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.errors import HarnessError, UsageError
from harness.verdicts.live import differing_columns, parse
from harness.verdicts.live.arm import link_instrument, prepared


def arm(text):
    """Return what a text says."""
    return parse(text, "python")


def test_an_arm_is_the_working_tree_unless_it_names_a_commit():
    assert arm(".") == parse(".", "python")
    assert (arm(".").revision, arm("set:A=1").revision, arm("v1.0").revision) == ("", "", "v1.0")


def test_parts_are_joined_by_commas():
    found = arm(f"HEAD~1,python={sys.executable},set:XLA_FLAGS=--a=1 --b=2,target=cpu,set:N=")
    assert found.revision == "HEAD~1"
    assert found.python == sys.executable
    assert found.variables == {"XLA_FLAGS": "--a=1 --b=2", "N": ""}
    assert found.target == "cpu"


def test_a_comma_within_a_value_stays_there():
    found = arm("set:XLA_FLAGS=--xla_disable_hlo_passes=a,b,set:N=2,scenario=warm")
    assert found.variables == {"XLA_FLAGS": "--xla_disable_hlo_passes=a,b", "N": "2"}
    assert found.scenario == "warm"


def test_arms_differ_by_intention_in_target_and_scenario():
    assert differing_columns(arm("."), arm("v1")) == ()
    assert differing_columns(arm("."), arm("target=cpu,scenario=warm")) == ("target", "scenario")


def test_a_virtual_environment_stands_for_its_interpreter(tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    assert arm(f"python={tmp_path}").python == str(python)  # the link is what knows its packages


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no arm of a live comparison: expected . for the working tree"),
        ("HEAD,,.", "is no arm of a live comparison"),
        ("--flag", "is no arm of a live comparison"),
        ("HEAD,main", "names two of a kind: 'HEAD' and 'main'"),
        ("set:XLA_FLAGS", "expected set:NAME=VALUE"),
        ("set:=1", "expected set:NAME=VALUE"),
        ("python=/nowhere/python", "there is no interpreter at /nowhere/python"),
        ("target=gpu:none", "gpu:none"),
        ("scenario=lukewarm", "lukewarm"),
    ],
)
def test_a_wrong_description_is_explained(text, said):
    with pytest.raises(UsageError) as raised:
        arm(text)
    assert said in str(raised.value)


def test_an_interpreter_without_what_the_harness_needs_is_told(tmp_path):
    bare = tmp_path / "python"
    bare.write_text('#!/bin/sh\necho "ModuleNotFoundError: No module named jax" >&2\nexit 1\n')
    bare.chmod(0o755)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "instrument").mkdir()
    with (
        pytest.raises(HarnessError, match=r"cannot run the harness: ModuleNotFoundError.*Install"),
        prepared(
            arm(f"python={bare}"),
            tmp_path / "benchmarks",
            link_instrument(tmp_path / "instrument"),
        ),
    ):
        pass


def test_a_commit_needs_a_repository(tmp_path):
    (tmp_path / "benchmarks").mkdir()
    with (
        pytest.raises(UsageError, match="is not in a git repository"),
        prepared(arm("v1"), tmp_path / "benchmarks", Path("instrument")),
    ):
        pass
