"""Results of before 0.2.0 in today's form: nothing is lost, or nothing is written."""

import json
import math

import pytest

from harness.asv import conversion
from harness.errors import StoreError
from harness.frame.load import everything
from harness.program.facts import Facts
from tests.frame.trees import ENV, record, write, write_asv

NAN = math.nan
AXES = [["8", "16"], ["'forward'"], ["'cpu'", "'gpu'"]]
NAMES = ["size", "transform", "target"]
CELLS = {
    "family.Work.track_trace": [[0.5, NAN, None, NAN], AXES, "1.aaaa", 5, 1.0],
    "family.Work.track_flops": [[7.0, NAN, 8.0, NAN], AXES, "1.aaaa", 5, 1.0],
    "family.Other.track_flops": [[9.0, NAN, 9.0, NAN], AXES, "1.aaaa", 5, 1.0],
    "plain.time_x": [[0.25], [], "2", 5, 1.0],
    "plain.track_target": [[NAN, 1.0], [["'a'", "'b'"]], "2", 5, 1.0],
}
ABOUT = {
    name: {"name": name, "param_names": NAMES if "family" in name else [], "params": cells[1]}
    for name, cells in CELLS.items()
}


@pytest.fixture
def tree(tmp_path):
    """Facts of `Work` are in records as well, those of `Other` nowhere else."""
    facts = [Facts(flops=7.0), Facts(flops=8.0)]
    write(
        tmp_path, *(record(axes={"size": 8 * (n + 1)}, facts=facts[n], key=str(n)) for n in (0, 1))
    )
    write_asv(tmp_path, CELLS, ABOUT)
    (tmp_path / "box" / "aa").mkdir()
    (tmp_path / "box" / "aa" / "old.json").write_text("{}")
    return tmp_path


def stored(tree):
    (file,) = tree.glob("box/*-*.json")
    found = json.loads(file.read_text())
    return found, {name: (cells[0], cells[1]) for name, cells in found["results"].items()}


def test_releases_targets_and_facts_are_as_asv_is_told_them_today(tree):
    before = everything(tree)
    said = list(conversion.convert(tree))
    found, cells = stored(tree)
    assert found["env_name"] == ENV
    assert found["requirements"] == {"jax": "0.10.2", "jaxlib": "0.10.2"}
    assert found["params"]["jaxlib"] == "0.10.2"
    here = [*AXES[:2], ["'cpu'"]]
    assert cells["family.Work.track_trace"] == ([0.5, None], here)
    assert cells["family.Other.track_facts"] == ([9.0, 9.0], [["'flops'"], *here])
    assert not any(name.endswith(("track_flops", "Work.track_facts")) for name in cells)
    assert cells["plain.time_x"] == ([0.25], [])
    assert len(cells["plain.track_target"][0]) == 2
    listed = json.loads((tree / "benchmarks.json").read_text())
    assert listed["family.Work.track_trace"]["params"] == here
    assert listed["family.Other.track_facts"]["param_names"] == ["fact", *NAMES]
    assert "5 values kept, 2 facts left to the records" in said[0]
    assert (tree / "box" / "aa" / "old.json5").is_file()
    after = everything(tree)
    ok = [frame[frame["status"] == "ok"] for frame in (before, after)]
    columns = ["workload", "stage", "unit", "value", "target", "size"]
    first, second = (sorted(map(str, frame[columns].to_numpy().tolist())) for frame in ok)
    assert first == second
    assert list(conversion.convert(tree)) == []


def test_a_value_that_would_be_lost_stops_it_before_anything_is_written(tree, monkeypatch):
    monkeypatch.setattr(conversion, "_targets_with_values", lambda benchmarks: {"'gpu'"})
    before = stored(tree)
    with pytest.raises(StoreError, match="would lose"):
        list(conversion.convert(tree))
    assert str(stored(tree)) == str(before)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "expected one folder"),
        (["none"], "holds no benchmarks.json"),
        (["\x1b[2Jnone"], "harness: \\x1b[2Jnone holds no"),
    ],
)
def test_a_wrong_call_is_one_line(capsys, arguments, said):
    assert conversion.main(arguments) == 2
    assert said in capsys.readouterr().err
