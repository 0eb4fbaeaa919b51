"""The trace against the documented format, and against the profile it is of."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from harness.cli.profile import app
from harness.errors import StoreError, UsageError
from harness.jaxhooks import events
from harness.output.report.profile.face import Profile
from harness.profiles import model, tracks
from tests.profiles import synthetic

METADATA = {
    **dict.fromkeys(("process_name", "process_labels", "thread_name"), str),
    **dict.fromkeys(("process_sort_index", "thread_sort_index"), int),
}
EXACT_US = 0.0005
"""Half a nanosecond, which is what a float of microseconds may be off."""


def check(made):
    """Hold a trace against the Trace Event Format; times in microseconds."""
    assert made["displayTimeUnit"] == "ms"
    spans = {}
    for event in made["traceEvents"]:
        phase, args = event["ph"], event["args"]
        assert event["name"]
        assert isinstance(event["pid"], int)
        assert 0 < event["tid"] < 2**32  # Perfetto's own limit
        if phase == "M":
            assert [type(value) for value in args.values()] == [METADATA[event["name"]]]
            continue
        assert event["ts"] >= 0
        if phase == "X":
            assert event["dur"] >= 0
            end = event["ts"] + event["dur"]
            spans.setdefault((event["pid"], event["tid"]), []).append((event["ts"], -end))
        elif phase == "i":
            assert event["s"] in ("g", "p", "t")
        else:
            assert phase == "C"
            assert all(isinstance(value, float | int) for value in args.values())
    for several in spans.values():
        for (_, outer), (begin, inner) in itertools.combinations(sorted(several), 2):
            assert begin >= -outer - EXACT_US or inner >= outer - EXACT_US, f"{begin} overlaps"


@pytest.fixture(scope="module")
def made():
    return tracks.trace_of(synthetic.profile())


def of(made, phase, **wanted):
    return [
        event
        for event in made["traceEvents"]
        if event["ph"] == phase and wanted.items() <= event.items()
    ]


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
    about = first["args"]
    assert (about["call site"], about["persistent cache"]) == ("train.py:22", "hit")
    assert (about["arguments"], about["static arguments"]) == ("x: float32[2]", "steps=2")
    assert about["cause"]


def test_moments_and_a_build_that_never_ended_are_in_it(made):
    answers = {"cache hit", "cache miss, written", "cache miss, not written"}
    assert {event["name"] for event in of(made, "i")} == {*answers, "jax.clear_caches"}
    assert len(of(made, "i", cat="cache")) == 2 * 14
    (hanging,) = [e for e in of(made, "X", cat="build") if e["name"].endswith("(unfinished)")]
    assert hanging["dur"] == 19_000
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


def test_two_machines_are_placed_by_the_calendar():
    made = synthetic.profile(processes=1)
    (process,) = made.processes
    # The other machine's clock began elsewhere; by the calendar it started at the same time.
    line = replace(process.started, host="elsewhere", clock_ns=77, process_ns=7)
    other = model.Process("elsewhere-1-0.jsonl", line, (line,))
    clock = tracks.Clock(Profile((process, other)))
    assert clock.at(other, 77) == clock.at(process, process.started.clock_ns)


def test_the_command_writes_it_packed_if_its_name_ends_in_gz(tmp_path, made):
    folder = synthetic.write(synthetic.profile(), tmp_path / "p")
    plain = tmp_path / "new" / "t.json"
    for output in (plain, folder / "trace.json.gz"):
        done = CliRunner().invoke(app, ["report", str(folder), "-o", str(output)])
        assert done.exit_code == 0, done.output
    packed = json.loads(gzip.decompress((folder / "trace.json.gz").read_bytes()))
    assert packed == json.loads(plain.read_bytes())
    assert len(packed["traceEvents"]) == len(made["traceEvents"])
    check(packed)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("-o", "t.JSON"), "t.JSON has none of the suffixes .html (a report), .json and .json.gz"),
        (("-o", "t.json", "--figures", "f"), "t.json is not it"),
    ],
)
def test_what_makes_no_trace_is_refused(tmp_path, options, text):
    folder = synthetic.write(synthetic.profile(), tmp_path / "p")
    done = CliRunner().invoke(app, ["report", str(folder), *options])
    assert isinstance(done.exception, UsageError)
    assert text in str(done.exception)


def test_a_place_that_cannot_be_written_is_named(tmp_path, made):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Choose another place with -o"):
        tracks.save(made, tmp_path / "file" / "t.json")
