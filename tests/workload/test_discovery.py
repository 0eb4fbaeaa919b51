"""Which workloads a folder of benchmarks holds, and what is said of files that cannot be used."""

import sys

import pytest

from harness.errors import HarnessError
from harness.measure.context import Options, local_context
from harness.measure.plan import Plan
from harness.stages.sampling import effort
from harness.workload import discovery
from harness.workload.workload import name_of

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
    folder = tmp_path / request.node.originalname
    folder.mkdir()
    (folder / "own.py").write_text(OWN)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        del sys.modules[name]


def test_a_file_that_cannot_be_imported_costs_only_itself(folder):
    (folder / "script.py").write_text("import sys\nsys.exit('usage: script.py FILE')\n")
    for place in ("first", "second"):
        (folder / place).mkdir()
        (folder / place / "same.py").write_text(f"raise ValueError({place!r})\n")
    found = discovery.discover(folder)
    assert [name_of(workload) for workload in found.workloads] == ["own.Own"]  # by two names
    said = "importing it raised {}.".format
    assert found.broken == {
        "script.py": said("SystemExit: usage: script.py FILE"),
        "first/same.py": said("ValueError: first"),
        "second/same.py": said("ValueError: second"),
    }


MAKER = """
from harness import Workload, spec

class Base(Workload):
    def inputs(self):
        return spec((8,))

def make(f):
    class Made(Base):
        function = staticmethod(f)
    return Made
"""


def test_one_class_of_a_factory_is_found(folder):
    (folder / "factory.py").write_text(MAKER + "Abs = make(abs)\n")
    found = discovery.discover(folder)
    assert found.broken == {}
    assert [name_of(one) for one in found.workloads] == ["factory.make.Made", "own.Own"]


def test_workloads_of_one_name_are_refused_with_their_variables_and_files(folder):
    (folder / "factory.py").write_text(MAKER + "Abs = make(abs)\nNot = make(lambda x: ~x)\n")
    found = discovery.discover(folder)
    assert [name_of(workload) for workload in found.workloads] == ["own.Own"]
    (place, reason), *rest = found.broken.items()
    assert rest == []
    assert place == "factory.make.Made"
    assert reason.startswith(
        "2 workloads have this name: Abs in factory.py, Not in factory.py. Records and asv tell"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A = type('B', (Base,), {'function': abs})", "class B of {0}.astray, which is not found"),
        ("from {0}.factory import make\nA = make(abs)", "class make.<locals>.Made of {0}.factory"),
        ("A = type('Own', (Base,), {'function': abs})\nOwn = 1", "class Own of {0}.astray, which"),
    ],
)
def test_a_class_that_would_not_be_found_again_is_refused_with_what_to_write(folder, text, said):
    (folder / "factory.py").write_text(MAKER)
    start = f"from {folder.name}.factory import Base\n"
    (folder / "astray.py").write_text(start + text.replace("{0}", folder.name))
    found = discovery.discover(folder)
    assert [name_of(workload) for workload in found.workloads] == ["own.Own"]
    (reason,) = found.broken.values()
    assert list(found.broken) == ["A in astray.py"]
    assert said.format(folder.name) in reason
    assert "`A = type('A', (Base,), {...})` or `class A(Base): ...`" in reason


def test_a_module_and_a_package_of_one_name_are_told_apart(folder):
    (folder / "own").mkdir()
    (folder / "own" / "__init__.py").write_text(OWN)
    found = discovery.discover(folder)
    assert len(found.workloads) == 1
    (reason,) = found.broken.values()
    assert "own.py cannot be imported as" in reason
    assert "own/__init__.py. Rename one of the two." in reason


def test_two_classes_of_one_name_are_not_planned_together(folder, tmp_path):
    other = type(folder)(tmp_path / "another_folder")
    other.mkdir()
    (other / "own.py").write_text(OWN)
    (first,) = discovery.discover(folder).workloads
    (second,) = discovery.discover(other).workloads
    context = local_context(tmp_path / "results", tmp_path, "tested")
    Plan([first, first], context, Options(effort("1x1")))
    with pytest.raises(
        HarnessError, match=r"Two workloads are called own\.Own: .* and .*another_f"
    ):
        Plan([first, second], context, Options(effort("1x1")))
