"""Which workloads a folder of benchmarks holds, and what is said of files that cannot be used."""

import sys

import pytest

from harness.declare import discovery
from harness.declare.workload import name_of

OWN = """
from harness import Workload, spec

class Own(Workload):
    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return x

Alias = Own
"""


@pytest.fixture
def folder(tmp_path, request):
    """A folder of benchmarks under a name of its own, with one module that is in order."""
    folder = tmp_path / request.node.name
    folder.mkdir()
    (folder / "own.py").write_text(OWN)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        del sys.modules[name]


def test_a_class_with_two_names_is_one_workload(folder):
    found = discovery.discover(folder)
    assert [name_of(workload) for workload in found.workloads] == ["own.Own"]
    assert found.broken == {}


def test_a_file_that_exits_when_it_is_imported_costs_only_itself(folder):
    (folder / "script.py").write_text("import sys\nsys.exit('usage: script.py FILE')\n")
    found = discovery.discover(folder)
    assert len(found.workloads) == 1
    text = "importing it raised SystemExit: usage: script.py FILE."
    assert found.broken == {"script.py": text}


def test_broken_files_of_one_name_in_two_folders_are_both_named(folder):
    for place in ("first", "second"):
        (folder / place).mkdir()
        (folder / place / "same.py").write_text(f"raise ValueError({place!r})\n")
    broken = discovery.discover(folder).broken
    said = "importing it raised ValueError: {}.".format
    assert broken == {f"{place}/same.py": said(place) for place in ("first", "second")}
