"""A side is one class in one file, and one line in the registry."""

import importlib

import pytest

from harness.errors import UsageError
from harness.sides import registry
from harness.sides.numpy_side import NumpySide
from harness.sides.registry import REFERENCE, SIDES, find, of_family
from harness.sides.side import Side, complete


def test_an_incomplete_side_fails_at_import_with_what_it_lacks(monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(NumpySide, "colour", "")
        with pytest.raises(
            TypeError, match=r"the side NumpySide \(.*numpy_side.py\) lacks colour$"
        ):
            importlib.reload(registry)
    importlib.reload(registry)


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
