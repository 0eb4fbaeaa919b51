from __future__ import annotations

import re
import sys

import pytest

from tests import forks

EXAMPLES = forks.ROOT / "docs" / "examples"
PAGE = (forks.ROOT / "docs" / "profile.md").read_text()
ELSEWHERE = ("slow_start.py",)
PROGRAMS = sorted(path for path in EXAMPLES.glob("*.py") if path.name not in ELSEWHERE)
NEEDS = re.compile(r"needs ([a-z]+)(?: and ([a-z]+))?\.")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_names_its_packages_and_stands_on_the_page(path):
    needs = NEEDS.search(path.read_text().partition('"""')[2].partition("\n\n")[0])
    assert needs, f"{path.name} does not say which packages it needs"
    imported = set(re.findall(r"^(?:import|from) (\w+)", path.read_text(), re.MULTILINE))
    assert {name for name in needs.groups() if name} <= imported


def test_the_page_of_profiles_has_a_row_of_every_program():
    assert {path.name for path in PROGRAMS} == set(
        re.findall(r"^\| `(\w+\.py)", PAGE, re.MULTILINE)
    )


@pytest.mark.replay
def test_the_shortest_example_runs():
    pytest.importorskip("optax", reason="pip install optax")
    done = forks.run([sys.executable, EXAMPLES / "optax_train.py"])
    assert done.returncode == 0, done.stderr[-2000:]
    assert "phase 1, epoch 3" in done.stdout
