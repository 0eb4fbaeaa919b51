"""Arms of a live comparison are described by commits, interpreters, variables, targets."""

from __future__ import annotations

import sys

import pytest

from harness.errors import HarnessError, UsageError
from harness.verdicts.live.arm import differing_columns, parse, prepared


def test_an_arm_is_the_working_tree_and_this_interpreter_unless_it_names_others(tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    assert parse(".").revision == parse("set:A=1").revision == ""
    arm = parse(
        f"v1.0,python={tmp_path},set:XLA_FLAGS=--a=b,c --b=2,target=cpu,set:N=,scenario=warm"
    )
    assert (arm.revision, arm.target, arm.scenario) == ("v1.0", "cpu", "warm")
    assert arm.variables == {"XLA_FLAGS": "--a=b,c --b=2", "N": ""}
    assert arm.python == str(python)  # the link knows its packages
    assert parse("v1.0").python == sys.executable
    other = parse("target=cpu,scenario=warm")
    assert differing_columns(parse("."), parse("v1")) == []
    assert differing_columns(parse("."), other) == ["target", "scenario"]


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
    benchmarks, bare = tmp_path / "benchmarks", tmp_path / "python"
    benchmarks.mkdir()
    bare.write_text('#!/bin/sh\necho "ModuleNotFoundError: No module named jax" >&2\nexit 1\n')
    bare.chmod(0o755)
    lacking = "cannot run the harness: ModuleNotFoundError.*Install"
    for text, folder, error, said in (
        (".", tmp_path / "none", UsageError, "no folder of benchmarks"),
        (f"python={bare}", benchmarks, HarnessError, lacking),
        ("v1", benchmarks, UsageError, "is not in a git repository"),
    ):
        with pytest.raises(error, match=said), prepared(parse(text), folder):
            pass
