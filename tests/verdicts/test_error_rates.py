"""The error rates of a machine that a comparison finds in its results."""

from __future__ import annotations

import msgspec
import pytest

from harness.errors import HarnessWarning
from harness.verdicts.error_rates import Power, Rate, newest
from tests.frame.trees import COMMIT
from tests.verdicts.arms_of import OTHER, tree
from tests.verdicts.test_rules import rates_of


def store(folder, name, rates):
    place = folder / "box" / "aa"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.json").write_bytes(msgspec.json.encode(rates))


def test_they_stand_under_a_comparison(compare, tmp_path):
    rates = rates_of([1.01])
    power = Rate(19, 20, 0.75, 1.0)
    rates.power = [Power("compile", 0.2, "default", power), Power("trace", 0.1, "quick", power)]
    store(tree(tmp_path), "one", rates)

    assert (
        "On box, identical arms were called different in 0 of 400 rows (95 %: 0 to 0.9 %; effort "
        "default). Slow-downs put in were found: compile +20 % in 19 of 20.\n"
        in compare(COMMIT, OTHER, "-r", tmp_path)[1]
    )


def test_the_newest_of_the_effort_and_of_all_workloads_come_first(tmp_path):
    for number, (effort, at) in enumerate((("default", 1), ("default", 2), ("quick", 3))):
        rates = rates_of([], effort=effort)
        store(tmp_path, number, msgspec.structs.replace(rates, started_at_ms=at))

    assert newest(tmp_path, "box", "default").started_at_ms == 2
    assert newest(tmp_path, "box", "6x1").started_at_ms == 3
    assert newest(tmp_path, "elsewhere") is None
    store(tmp_path, "some", msgspec.structs.replace(rates_of([]), started_at_ms=9, narrowed=True))
    assert newest(tmp_path, "box", "default").started_at_ms == 2


def test_files_that_cannot_be_used_are_named_and_left_out(tmp_path):
    store(tmp_path, "other", msgspec.structs.replace(rates_of([]), schema=99))
    with pytest.warns(HarnessWarning, match="schema version 99"):
        assert newest(tmp_path, "box") is None
    (tmp_path / "box" / "aa" / "other.json").write_text("{}")
    with pytest.warns(HarnessWarning, match=r"other\.json are left out"):
        assert newest(tmp_path, "box") is None
