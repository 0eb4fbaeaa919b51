"""The trace against the documented format, and against the profile it is of."""

from __future__ import annotations

import dataclasses
import gzip
import json
from dataclasses import replace

import pytest

from harness.errors import StoreError
from harness.profiles import model, tracks
from harness.profiles.tracks import Slice as Piece
from harness.profiles.tracks import nested
from harness.report.profile.face import Profile
from harness.watch import events
from tests.profiles import synthetic

PHASES = {"X", "i", "C", "M"}
NAMES = {
    *("process_name", "process_labels", "process_sort_index"),
    *("thread_name", "thread_sort_index"),
}
EXACT_US = 0.0005
"""Half a nanosecond, which is what a float of microseconds may be off."""


def check(made):
    """Hold a trace against the Trace Event Format; times in microseconds."""
    assert isinstance(made["traceEvents"], list)
    assert made["displayTimeUnit"] in ("ms", "ns")
    open_pieces = {}
    for event in made["traceEvents"]:
        assert event["ph"] in PHASES
        assert isinstance(event["name"], str)
        assert event["name"]
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert 0 < event["tid"] < 2**32  # Perfetto's own limit
        if event["ph"] == "M":
            assert event["name"] in NAMES
            (value,) = event["args"].values()
            assert isinstance(value, int if event["name"].endswith("index") else str)
            continue
        assert isinstance(event["ts"], float | int)
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
            open_pieces.setdefault((event["pid"], event["tid"]), []).append(event)
        elif event["ph"] == "i":
            assert event["s"] in ("g", "p", "t")
        else:
            assert all(isinstance(value, float | int) for value in event["args"].values())
    for pieces in open_pieces.values():
        check_nesting(pieces)


def check_nesting(pieces):
    around = []
    for piece in sorted(pieces, key=lambda piece: (piece["ts"], -piece["dur"])):
        end = piece["ts"] + piece["dur"]
        while around and around[-1] <= piece["ts"] + EXACT_US:
            around.pop()
        assert not around or end <= around[-1] + EXACT_US, f"{piece} overlaps"
        around.append(end)


@pytest.fixture(scope="module")
def made():
    return tracks.trace_of(synthetic.profile())


def of(made, phase, **wanted):
    return [
        event
        for event in made["traceEvents"]
        if event["ph"] == phase and all(event.get(key) == value for key, value in wanted.items())
    ]


def test_the_trace_is_as_the_format_says(made):
    check(json.loads(json.dumps(made)))


def test_the_check_sees_an_overlap():
    pieces = [{"ts": 0.0, "dur": 5.0}, {"ts": 3.0, "dur": 5.0}]
    with pytest.raises(AssertionError, match="overlaps"):
        check_nesting(pieces)


def test_processes_and_threads_are_named_and_numbered_once(made):
    names = {event["pid"]: event["args"]["name"] for event in of(made, "M", name="process_name")}
    assert names == {4711: "train.py[4711]", 4712: "train.py[4712]"}
    threads = of(made, "M", name="thread_name")
    assert [event["args"]["name"] for event in threads] == ["main", "thread 1"] * 2
    assert len({event["tid"] for event in threads}) == 4


def test_each_build_holds_its_stages(made):
    builds = of(made, "X", cat="build")
    assert len(builds) == 2 * 14 + 1
    first = builds[0]
    inside = [
        event
        for event in of(made, "X")
        if event["tid"] == first["tid"]
        and first["ts"] <= event["ts"] < first["ts"] + first["dur"]
        and event["cat"] != "build"
    ]
    assert [event["name"] for event in inside] == ["trace", "lower", "load"]
    assert [event["dur"] for event in inside] == [1000, 2000, 6000]
    assert first["args"]["call site"] == "train.py:22"
    assert first["args"]["arguments"] == "x: float32[2]"
    assert first["args"]["static arguments"] == "steps=2"
    assert first["args"]["cause"]
    assert first["args"]["persistent cache"] == "hit"


def test_hits_misses_and_emptied_caches_are_instants(made):
    names = {event["name"] for event in of(made, "i")}
    assert names == {
        *("cache hit", "cache miss, written", "cache miss, not written"),
        "jax.clear_caches",
    }
    assert len(of(made, "i", cat="cache")) == 2 * 14


def test_a_build_that_never_ended_is_in_it(made):
    (hanging,) = [e for e in of(made, "X", cat="build") if e["name"].endswith("(unfinished)")]
    assert hanging["dur"] == 19_000


def test_bytes_of_executables_only_grow(made):
    totals = [event["args"]["bytes of code"] for event in of(made, "C", pid=4711)]
    assert totals == [1000 * n for n in range(1, 15)]


def test_times_are_since_the_beginning_of_the_run(made):
    assert min(event["ts"] for event in of(made, "X")) == 50_000  # the run began 50 ms before


def test_what_jax_empties_itself_when_python_ends_is_left_out():
    (process,) = synthetic.profile(processes=1).processes
    lines = process.lines
    by_itself = events.Cleared("backends", 0, 9, process.end_ns)
    process = dataclasses.replace(process, lines=(*lines, events.Stack(9, ()), by_itself))
    made = tracks.trace_of(Profile((process,)))
    assert [event["name"] for event in of(made, "i", cat="cleared")] == ["jax.clear_caches"]


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (("/x/bin/python3.12", "-u", "-W", "error", "/y/train.py", "--steps"), "train.py[4711]"),
        (("python", "-m", "package.train"), "package.train[4711]"),
        (("python", "-c", "print(1)"), "python[4711]"),
        (("python",), "python[4711]"),
        (("/x/bin/pytest", "tests"), "pytest[4711]"),
        ((), "python[4711]"),
    ],
)
def test_a_process_is_called_as_its_program(argv, name):
    (process,) = synthetic.profile(processes=1).processes
    first = replace(process.started, argv=argv)
    process = dataclasses.replace(process, started=first)
    assert list(tracks.process_names(Profile((process,))).values()) == [name]


def test_an_inner_piece_ends_with_the_outer_one_at_the_latest():
    pieces = [Piece(0, 10, "a", "", {}), Piece(5, 12, "b", "", {}), Piece(10, 12, "c", "", {})]
    assert [(p.name, p.begin_ns, p.end_ns) for p in nested(pieces)] == [
        ("a", 0, 10),
        ("b", 5, 10),
        ("c", 10, 12),
    ]


def test_two_machines_are_placed_by_the_calendar():
    made = synthetic.profile(processes=1)
    (process,) = made.processes
    # The other machine's clock began elsewhere; by the calendar it started at the same time.
    line = replace(process.started, host="elsewhere", clock_ns=77, process_ns=7)
    other = model.Process("elsewhere-1-0.jsonl", line, (line,))
    clock = tracks.Clock(Profile((process, other)))
    assert clock.at(other, 77) == clock.at(process, process.started.clock_ns)


def test_the_file_is_packed_if_its_name_says_so(tmp_path):
    profile = synthetic.profile()
    number = tracks.save(tracks.trace_of(profile), tmp_path / "new" / "t.json.gz")
    packed = json.loads(gzip.decompress((tmp_path / "new" / "t.json.gz").read_bytes()))
    tracks.save(tracks.trace_of(profile), tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_bytes()) == packed
    assert len(packed["traceEvents"]) == number
    check(packed)


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Choose another place with -o"):
        tracks.save(tracks.trace_of(synthetic.profile()), tmp_path / "file" / "t.json")


def test_the_command_writes_it_beside_the_profile(tmp_path):
    from click.testing import CliRunner

    from harness.cli.profile import app

    folder = synthetic.write(synthetic.profile(), tmp_path / "p")
    done = CliRunner().invoke(app, ["trace", str(folder)])
    assert done.exit_code == 0, done.output
    check(json.loads(gzip.decompress((folder / "trace.json.gz").read_bytes())))
