"""The error rates of a machine that a comparison finds in its results."""

from __future__ import annotations

import json

import msgspec
import pytest

from harness.errors import HarnessWarning
from harness.records import json_file
from harness.verdicts.error_rates import METHOD, Power, Rate, stored
from tests.frame.trees import COMMIT, ENV
from tests.verdicts.arms_of import OTHER, tree
from tests.verdicts.test_rules import rates_of


def store(folder, name, rates):
    json_file.write(folder / "box" / "aa" / f"{name}.json", rates)


def test_those_of_its_effort_and_environment_stand_under_a_comparison(compare, tmp_path):
    power = Rate(19, 20, 0.75, 1.0)
    rates = rates_of([1.01], env=ENV, families={"compile": Rate(0, 12, 0.0, 0.3)})
    rates.power = [Power("compile", 0.2, "default", power), Power("trace", 0.1, "quick", power)]
    store(tree(tmp_path), "one", rates)

    assert (
        f"Error rates (box, effort default, {ENV}): identical arms were called different in 0 of "
        "400 rows (95 %: 0 to 0.9 %), in 0 of 12 families. Slow-downs put in were found: "
        "compile +20 % in 19 of 20.\n" in compare(COMMIT, OTHER, "-r", tmp_path)[1]
    )


@pytest.mark.parametrize("fields", [{"env": "other"}, {"env": ENV, "effort": "thorough"}], ids=str)
def test_those_of_another_effort_or_environment_do_not(fields, compare, tmp_path):
    store(tree(tmp_path), "one", rates_of([1.01], **fields))

    assert (
        f"Error rates (box, effort default, {ENV}): unknown; `harness aa --power` measures them.\n"
        in compare(COMMIT, OTHER, "-r", tmp_path)[1]
    )


def test_those_of_all_workloads_come_first_and_then_the_newest(compare, tmp_path):
    for number, (env, at, narrowed) in enumerate(
        ((ENV, 1, False), (ENV, 2, False), ("f", 3, False), (ENV, 9, True))
    ):
        rates = rates_of([], env=env, narrowed=narrowed)
        store(tmp_path, number, msgspec.structs.replace(rates, started_at_ms=at))
    store(tmp_path, "quick", rates_of([], effort="quick"))

    found = stored(tmp_path, "box", "default")
    assert [one.started_at_ms for one in found] == [3, 2, 1, 9]
    said = compare(COMMIT, OTHER, "-r", tree(tmp_path), "--format", "json")[1]
    (of_env,) = json.loads(said)["error_rates"].values()
    assert of_env["started_at_ms"] == 2
    assert stored(tmp_path, "elsewhere", "default") == []


def test_those_of_an_older_way_to_judge_are_read_and_do_not_count(tmp_path):
    old = msgspec.to_builtins(rates_of([1.5]))
    for later in ("method", "families"):
        del old[later]
    store(tmp_path, "old", old)
    assert stored(tmp_path, "box", "default") == []
    store(tmp_path, "new", rates_of([1.5], method=METHOD))
    assert len(stored(tmp_path, "box", "default")) == 1


def test_files_that_cannot_be_used_are_named_and_left_out(tmp_path):
    store(tmp_path, "other", msgspec.structs.replace(rates_of([]), schema=99))
    with pytest.warns(HarnessWarning, match="schema version 99"):
        assert stored(tmp_path, "box", "default") == []
    (tmp_path / "box" / "aa" / "other.json").write_text("{}")
    with pytest.warns(HarnessWarning, match=r"other\.json are left out"):
        assert stored(tmp_path, "box", "default") == []


def test_a_changed_digit_is_noticed_and_files_of_before_checksums_are_read(tmp_path):
    store(tmp_path, "one", rates_of([], env="e7"))
    path = tmp_path / "box" / "aa" / "one.json"
    text = path.read_text()
    for damaged in (text.replace("e7", "e8"), text[: text.rindex(',"crc32"')] + "}"):
        path.write_text(damaged)
        with pytest.warns(HarnessWarning, match="its checksum is (wrong|missing)"):
            assert stored(tmp_path, "box", "default") == []
    path.write_bytes(msgspec.json.encode(rates_of([], env="e8", schema=1)))
    assert [one.env for one in stored(tmp_path, "box", "default")] == ["e8"]
