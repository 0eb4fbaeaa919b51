"""A side is one class in one file, and one line in the registry."""

import json

import pytest

from harness.errors import UsageError
from harness.sides.numpy_side import NumpySide
from harness.sides.registry import REFERENCE, SIDES, find, of_family
from harness.sides.side import Side, complete
from tests.added import House

TWICE = '''
from harness.sides.numpy_side import NumpySide


class TwiceSide(NumpySide):
    """The baseline, computed twice."""

    name = "twice"
    title = "the workload's baseline in NumPy, twice"
    families = ("cpu",)
    colour = "#123456"

    def build(self, workload, case, arguments):
        call = super().build(workload, case, arguments)
        return lambda *arguments: (call(*arguments), call(*arguments))[1]
'''

WORKLOAD = """
from harness import Workload, spec


class Sum(Workload):
    sweep = {"size": [64]}
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return x.sum()

    @staticmethod
    def baseline(xp, x):
        return xp.sum(x)
"""

CHART = """
import harness
from harness.report.figures.against import chart
from harness.sides.registry import SIDES
print(list(SIDES).index("twice"), SIDES["twice"].colour)
frame = harness.against_baseline("results")
print("twice" in str(chart(frame).to_dict()))
"""


def house_with(side, folder):
    """Return a copy of the house with one more side."""
    house = House(folder)
    house.add(
        "harness/sides/twice_side.py",
        side,
        "harness/sides/registry.py",
        "FusedSide,",
        "TwiceSide",
        "from harness.sides.twice_side import TwiceSide",
    )
    return house


def test_a_new_side_is_measured_compared_and_drawn(tmp_path):
    house = house_with(TWICE, tmp_path)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "sums.py").write_text(WORKLOAD)
    asked = ("Sum", "--effort", "1x1", "--with-baselines", "--machine", "here")
    house.command("run", *asked, "--case", "size=64")  # the ceilings have no such size
    rows = json.loads(house.command("baselines", "-s", "Sum", "--format", "json"))
    assert [(row["threads"], row["baseline"]) for row in rows] == [
        (threads, baseline) for threads in ("one", "all") for baseline in ("numpy", "twice")
    ]
    for row in rows:
        assert row["baseline_s"] > 0
        assert not row["verdict"].startswith("no ratio"), row["verdict"]
    done = house.python("-c", CHART)
    assert done.stdout.split() == ["2", "#123456", "True"], done.stderr


def test_an_incomplete_side_fails_at_import_with_what_it_lacks(tmp_path):
    house = house_with(TWICE.replace('    colour = "#123456"\n', ""), tmp_path)
    done = house.python("-c", "import harness.sides.registry")
    assert "the side TwiceSide (" in done.stderr
    assert "twice_side.py) lacks colour" in done.stderr


def test_what_a_side_must_do_is_named_as_well():
    class Idle(Side):
        name = title = "idle"
        families = ("cpu",)

        def __init__(self, target):
            pass

    with pytest.raises(TypeError, match=r"lacks colour, build\(\), done\(\), fetch\(\), put\(\)"):
        complete(Idle)


def test_the_reference_is_one_of_the_sides_of_every_family_that_has_any():
    assert REFERENCE == "xla"
    for family in ("cpu", "gpu"):
        assert REFERENCE in [side.name for side in of_family(family)]
    assert of_family("tpu") == []
    assert find("numpy") is NumpySide
    with pytest.raises(UsageError, match=r"No side is called 'torch'\. There are: xla, numpy"):
        find("torch")


def test_every_side_has_a_colour_of_its_own_in_its_family():
    for family in ("cpu", "gpu"):
        colours = [side.colour for side in of_family(family)]
        assert len(set(colours)) == len(colours)
    assert all(side.title for side in SIDES.values())
