"""What the room is for: every private name of JAX stands here, and nothing else is needed."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.watch import jax_names

HARNESS = Path(__file__).resolve().parents[2] / "harness"
PRIVATE = re.compile(r"jax[./\\]_src|jaxlib\._|\b_jax\b|/jax/(core|compilation_cache)/")


def test_private_names_of_jax_stand_in_one_file():
    elsewhere = [
        f"{file.relative_to(HARNESS.parent)}:{number}: {line.strip()}"
        for file in sorted(HARNESS.rglob("*.py"))
        if file.name != "jax_names.py"
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if PRIVATE.search(line)
    ]
    assert elsewhere == []


IMPORT = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root.parent))
for file in sorted((root / "watch").rglob("*.py")):
    name = ".".join(("harness", *file.relative_to(root).with_suffix("").parts))
    importlib.import_module(name.removesuffix(".__init__"))
print(*sys.modules)
"""


def test_it_needs_the_standard_library_alone():
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORT, str(HARNESS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = set(done.stdout.split())
    known = {*sys.stdlib_module_names, "harness", "__main__"}
    assert {
        name for name in names if not (name.partition(".")[0] in known or name.startswith("_sys"))
    } == set()
    rooms = {".".join(name.split(".")[:2]) for name in names if name.startswith("harness.")}
    assert rooms == {"harness.watch", "harness.errors"}


def test_what_is_said_of_releases_holds_for_this_one():
    release = ".".join(jax_names.version().split(".")[:2])
    for names in (jax_names.BUILDS, jax_names.REQUESTS):
        points = jax_names.points(names, "test", HarnessError)
        for role, name in names.items():
            for argument, releases in (name.some_releases or {}).items():
                there = argument in inspect.signature(points[role].function).parameters
                assert there == (release in releases.split()), f"{role}: {argument}"


@pytest.mark.parametrize("table", [jax_names.DURATIONS, jax_names.CACHE_EVENTS])
def test_events_of_jax_are_known_to_it(table):
    sources = "".join(
        Path(jax_names.module(name).__file__).read_text()
        for name in ("dispatch", "compiler", "compilation_cache", "interpreters.pxla")
    )
    assert [event for event in table if event not in sources] == []
