from __future__ import annotations

import re
import sys

import pytest

from tests import forks

EXAMPLES = forks.ROOT / "docs" / "examples"
PAGE = (forks.ROOT / "docs" / "cookbook-profile.md").read_text()
NOT_IN_THE_COOKBOOK = ("outputs.py", "slow_start.py")
PROGRAMS = sorted(path for path in EXAMPLES.glob("*.py") if path.name not in NOT_IN_THE_COOKBOOK)
NEEDS = re.compile(r"needs ([a-z]+)(?: and ([a-z]+))?\.")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_names_its_packages_and_stands_in_the_cookbook(path):
    needs = NEEDS.search(path.read_text().partition('"""')[2].partition("\n\n")[0])
    assert needs, f"{path.name} does not say which packages it needs"
    imported = set(re.findall(r"^(?:import|from) (\w+)", path.read_text(), re.MULTILINE))
    assert {name for name in needs.groups() if name} <= imported


def test_every_command_of_the_cookbook_has_what_was_said():
    commands = re.findall(r"harness profile -- python docs/examples/(.*)\n", PAGE)
    said = re.findall(r"<!-- profile: (.*?) -->\n\n```\n(.+?)```\n", PAGE, re.DOTALL)
    assert commands == [command for command, _ in said]
    assert {command.split()[0] for command in commands} == {path.name for path in PROGRAMS}
    for command, text in said:
        assert "went into building programs" in text, command


@pytest.mark.replay
def test_the_shortest_example_runs():
    pytest.importorskip("optax", reason="pip install optax")
    done = forks.run([sys.executable, EXAMPLES / "optax_train.py"])
    assert done.returncode == 0, done.stderr[-2000:]
    assert "phase 1, epoch 3" in done.stdout
