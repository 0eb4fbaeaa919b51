"""Arms of a live comparison are described by commits, interpreters, variables, targets."""

from __future__ import annotations

import sys

import pytest

from harness.errors import HarnessError, UsageError
from harness.verdicts.live.arm import differing_columns, parse, prepared


def test_an_arm_is_the_working_tree_and_this_interpreter_unless_it_names_others():
    assert (parse(".").revision, parse("set:A=1").revision) == ("", "")
    assert (parse("v1.0").revision, parse("v1.0").python) == ("v1.0", sys.executable)


def test_parts_are_joined_by_commas():
    arm = parse(f"HEAD~1,python={sys.executable},set:XLA_FLAGS=--a=1 --b=2,target=cpu,set:N=")
    assert (arm.revision, arm.python, arm.target) == ("HEAD~1", sys.executable, "cpu")
    assert arm.variables == {"XLA_FLAGS": "--a=1 --b=2", "N": ""}


def test_a_comma_within_a_value_stays_there():
    arm = parse("set:XLA_FLAGS=--xla_disable_hlo_passes=a,b,set:N=2,scenario=warm")
    assert arm.variables == {"XLA_FLAGS": "--xla_disable_hlo_passes=a,b", "N": "2"}
    assert arm.scenario == "warm"


def test_arms_differ_by_intention_in_target_and_scenario():
    assert differing_columns(parse("."), parse("v1")) == []
    assert differing_columns(parse("."), parse("target=cpu,scenario=warm")) == [
        *("target", "scenario")
    ]


def test_a_virtual_environment_stands_for_its_interpreter(tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    assert parse(f"python={tmp_path}").python == str(python)  # the link knows its packages


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
        parse(text)
    assert said in str(raised.value)


def test_what_cannot_be_prepared_is_told(tmp_path):
    benchmarks = tmp_path / "benchmarks"
    bare = tmp_path / "python"
    bare.write_text('#!/bin/sh\necho "ModuleNotFoundError: No module named jax" >&2\nexit 1\n')
    bare.chmod(0o755)
    lacking = "cannot run the harness: ModuleNotFoundError.*Install"
    with (
        pytest.raises(UsageError, match="no folder of benchmarks"),
        prepared(parse("."), benchmarks),
    ):
        pass
    benchmarks.mkdir()
    with (
        pytest.raises(HarnessError, match=lacking),
        prepared(parse(f"python={bare}"), benchmarks),
    ):
        pass
    with (
        pytest.raises(UsageError, match="is not in a git repository"),
        prepared(parse("v1"), benchmarks),
    ):
        pass
