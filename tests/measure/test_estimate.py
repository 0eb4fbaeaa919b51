"""Before a sweep measures, it says how long that took the last time on this machine."""

import shutil

import pytest

from harness.cli.progress import expected_text, progress, turns_text
from harness.measure.estimate import Expected, Pace
from harness.measure.job import Job, JobCase
from harness.measure.outcome import Turns, warn
from harness.records.store import Store
from harness.workload.location import locate
from tests.sweeps import sweep, workload

Scale = workload("small", "Scale")


class Enough(Exception):
    pass


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Results of two processes, and what was expected of them."""
    results, messages = tmp_path_factory.mktemp("two"), []
    sweep([Scale], results, "2x1", on_progress=messages.append)
    (first,) = [one.expected for one in messages if one.expected]
    return results, first


def told(results, effort, **options):
    """Return what a sweep expects, which then measures nothing; None where nothing is left."""

    def on_progress(message):
        if message.expected:
            raise Enough(message.expected)

    try:
        sweep([Scale], results, effort, on_progress=on_progress, **options)
    except Enough as said:
        return said.args[0]


def test_the_second_time_is_expected_to_take_as_long_as_the_first(measured, tmp_path):
    results, first = measured
    assert (first.records > 0, first.known, first.seconds) == (True, 0, 0)
    again = told(results, "2x1", fresh=True)
    assert (again.records, again.known) == (first.records, first.records)
    (file,) = results.glob("*/records/*.jsonl")
    began = sorted({one.started_at_ms for one in Store(file).read()})
    assert len(began) == 2
    # The first process lasted until the second began, and each is expected to last as long.
    assert again.seconds == pytest.approx(2 * (began[1] - began[0]) / 1e3)
    assert told(tmp_path, "2x1").known == 0, "results of another folder are not looked at"


def test_what_is_there_already_takes_no_time(measured):
    assert told(measured[0], "2x1") is None
    more, whole = told(measured[0], "3x1"), told(measured[0], "3x1", fresh=True)
    assert 3 * more.records == whole.records


def test_damaged_records_tell_nothing_and_stop_nothing(measured, tmp_path):
    shutil.copytree(measured[0], tmp_path, dirs_exist_ok=True)
    (file,) = tmp_path.glob("*/records/*.jsonl")
    file.write_bytes(b'{"replicate": 3}\n\xff\xfe\n{}\n')
    assert told(tmp_path, "1x1").known == 0


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (Expected(48, 0, 0), "48 records to measure. No estimate yet: "),
        (
            Expected(48, 48, 184),
            "48 records to measure. The last time on this machine they took 3 min 4 s.",
        ),
        (Expected(48, 40, 180), "The last time on this machine 40 of them took 2 min 30 s."),
        (Expected(48, 30, 0), "48 records to measure. No estimate yet: "),
        (Expected(2, 2, 3, is_least=True), "they took 3.0 s. A case that scatters gets more."),
    ],
)
def test_it_is_said_in_one_sentence(expected, text):
    assert text in expected_text(expected)


@pytest.mark.parametrize(
    ("turns", "text"),
    [
        (Turns(4, 8, None, None), "At most 8 rounds, in turns. No estimate yet: "),
        (Turns(4, 8, 7.8, None), "about 7.8 s: 4 rounds about 31 s, 8 rounds at most 62 s."),
        (Turns(4, 8, 7.8, 40.0), "about 7.8 s: 4 rounds about 31 s, 8 rounds at most 40 s."),
        (Turns(2, 2, 7.8, None), "A round takes about 7.8 s: 2 rounds at most 16 s."),
    ],
)
def test_rounds_have_an_estimate_once_one_was_measured(turns, text):
    assert text in turns_text(turns)


SUITE = """
2 3.38, 4 4.24, 4 5.02, 2 1.72, 2 1.42, 3 2.71, 4 2.25, 3 1.36, 2 2.48, 2 3.24 cold, 2 5.94 warm,
4 8.04 first, 1 1.15, 1 1.8, 6 2.34, 2 2.98, 4 1.54, 4 2.32, 2 1.44, 2 1.4, 4 1.7, 4 2.15, 4 3.22,
4 2.47, 2 3.06, 2 1.96, 6 2.07, 1 1.02, 2 1.92, 1 0.96, 4 2.16, 4 3.08"""
"""Records and seconds of the processes of `harness run --effort quick` in this repository."""


def job(group, process, records, scenario="off"):
    return Job(
        source=locate(Scale),
        target="cpu",
        platforms="cpu",
        scenario="off" if scenario == "first" else scenario,
        first_call=scenario == "first",
        cases=[JobCase(number, "", "") for number in range(records)],
        group=f"group {group}",
        process=process,
        base={"protocol": "1 pass"},
    )


def estimates(jobs, folder):
    """Return the seconds that are left after each of some processes, and their estimate."""
    pace, estimated = Pace([job for job, _ in jobs], folder), []
    assert pace.left_s() is None
    left = sum(seconds for _, seconds in jobs)
    for one, seconds in jobs:
        pace.end(one, seconds)
        left -= seconds
        estimated.append((left, pace.left_s()))
    return estimated


def test_there_is_no_estimate_before_enough_is_known(tmp_path):
    suite = []
    for group, each in enumerate(SUITE.split(",")):
        records, seconds, *scenario = each.split()
        suite.append((job(group, 0, int(records), *scenario), float(seconds)))
    estimated = estimates(suite, tmp_path)
    assert [estimate for _, estimate in estimated[:8]] == [None] * 8  # the first does not count
    assert None not in [estimate for _, estimate in estimated[8:]]
    # One group: its first process has to read everything from the disk.
    one = [(job(0, n, 2), seconds) for n, seconds in enumerate([12.0, 4.0, 4.2, 3.9, 4.0])]
    assert [estimate is None for _, estimate in estimates(one, tmp_path)] == [True] + 4 * [False]
    # Two groups, of which one takes four times as long as the other.
    two = [(job(n % 2, n // 2, 2), seconds) for n, seconds in enumerate([9.0, 8.0, 2.0, 8.1, 2.1])]
    assert [estimate is None for _, estimate in estimates(two, tmp_path)] == [True] * 2 + [
        False
    ] * 3
    for left, estimate in [*estimated, *estimates(one, tmp_path), *estimates(two, tmp_path)]:
        if estimate is not None and left > 5:
            assert 1 / 1.55 <= estimate / left <= 1.55


def test_a_warning_of_no_case_is_no_line_of_progress(capsys):
    with progress() as on_progress:
        warn(on_progress)("waiting")
    assert capsys.readouterr().err == "waiting\n"


def test_a_process_that_was_left_out_is_not_waited_for(tmp_path):
    jobs = [job(group, process, 2) for group in (0, 1) for process in (0, 1, 2)]
    pace = Pace(jobs, tmp_path)
    for one in sorted(jobs, key=lambda one: one.process):
        if (one.group, one.process) != ("group 0", 1):
            pace.end(one, 4.0)
    assert pace.left_s() == 0
