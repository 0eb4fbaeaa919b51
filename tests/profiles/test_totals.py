from __future__ import annotations

import random

import numpy as np
import pytest

from harness.profiles.totals import PARTS, share, totals
from harness.watch import events
from tests.profiles.logs import MAIN, build, ended, ns, profile_of, request, samples, started


def total_of(profile, scope="process", number=0):
    return [total for total in totals(profile) if total.scope == scope][number]


def check(profile):
    """Whatever is in a log: nothing is negative, and everything adds up."""
    found = list(totals(profile))
    for total in found:
        assert set(total.seconds) == set(PARTS)
        assert min(total.seconds.values()) >= 0, total
        assert sum(total.seconds.values()) == pytest.approx(total.wall_s, abs=1e-6), total
        for part in PARTS:
            low, high = total.interval(part)
            assert low <= total.seconds[part] <= high
    return found


SIMPLE = [
    started(clock=100),
    events.Import(ns(110), ns(210), MAIN, {"jax": "0.10.2"}),
    build(
        1,
        300,
        400,
        ("trace", 300, 310),
        ("lower", 310, 330),
        ("compile", 330, 390),
        requests=(request("written", 60, 45, write=10),),
    ),
    samples(1000, jax=15, program=5),
    ended(1000),
]


def test_a_process_adds_up_to_its_wall_time(tmp_path):
    profile = profile_of(tmp_path, SIMPLE)
    check(profile)
    total = total_of(profile)
    assert total.wall_s == pytest.approx(1.0)
    expected = {
        "python": 0.1,
        "import": 0.1,
        "trace": 0.01,
        "lower": 0.02,
        "compile": 0.05,
        "write": 0.01,
        "other": 0.01,
        "jax": 0.525,
        "program": 0.175,
    }
    assert {part: s for part, s in total.seconds.items() if s} == pytest.approx(expected)


def test_without_a_persistent_cache_nothing_is_written(tmp_path):
    spans = ("trace", 300, 310), ("compile", 310, 390)
    asked = (request("unwritten", 60, 45, write=10, reason="no directory"),)
    lines = [started(clock=100), build(1, 300, 400, *spans, requests=asked), ended(1000)]
    profile = profile_of(tmp_path, lines)
    total = total_of(profile)
    assert (total.seconds["compile"], total.seconds["write"]) == (pytest.approx(0.08), 0.0)
    assert list(profile.frame("cache")["write_s"]) == [0.0]


def test_the_sampled_parts_have_an_interval_and_the_others_none(tmp_path):
    total = total_of(profile_of(tmp_path, SIMPLE))
    low, high = total.interval("jax")
    # Wilson, 15 of 20: 0.531 to 0.888.
    assert (low, high) == pytest.approx((0.531 * 0.7, 0.888 * 0.7), abs=1e-3)
    assert total.interval("compile") == (total.seconds["compile"],) * 2


HIT = build(1, 200, 230, ("compile", 200, 220), requests=(request("hit", 15, load=5),))
TRACED = build(1, 200, 300, ("trace", 200, 300))
BACKEND = events.Backend(ns(210), ns(290), MAIN, "cpu", ("cpu:0",))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([started(), HIT, ended(300)], {"load": 0.02, "compile": 0}),
        ([started(), BACKEND, TRACED, ended(300)], {"backend": 0.08, "trace": 0.02}),
        (
            [started(), samples(150, library=4), TRACED, ended(500)],
            {"library": 0.05, "unattributed": 0.25},
        ),
        ([started(), TRACED, ended(300, own_ns=ns(9e9))], {"trace": 0.1, "profile": 0.1}),
        (
            [started(clock=150, how="context"), TRACED, ended(600)],
            {"python": 0, "unattributed": 0.35},
        ),
        ([started(), ended(400)], {"unattributed": 0.3}),
        ([started(), build(1, -500, 150, ("trace", -500, 150)), ended(300)], {"trace": 0.15}),
    ],
    ids=[
        "a hit is loading and no compiling",
        "the start of the backend is no tracing",
        "what was not sampled is unattributed",
        "a profile that claims to have cost more than there is",
        "a context counts from its beginning",
        "no build at all",
        "a build before the clock began is cut",
    ],
)
def test_each_part_has_its_seconds(tmp_path, lines, expected):
    run = check(profile_of(tmp_path, lines))[0]
    assert {part: run.seconds[part] for part in expected} == pytest.approx(expected)


def test_threads_that_build_at_once_are_counted_once_on_the_wall_clock(tmp_path):
    lines = [
        build(1, 200, 400, ("compile", 200, 400)),
        build(2, 300, 500, ("trace", 300, 500), thread=2),
    ]
    profile = profile_of(tmp_path, [started(), *lines, ended(600)])
    check(profile)
    process = total_of(profile)
    assert process.build_s == pytest.approx(0.3)
    assert process.seconds["compile"] == pytest.approx(0.15)
    threads = [total for total in totals(profile) if total.scope == "thread"]
    assert [total.build_s for total in threads] == pytest.approx([0.2, 0.2])
    assert [total.main for total in threads] == [True, False]


def test_a_build_inside_another_counts_for_itself(tmp_path):
    inner = build(1, 210, 260, ("compile", 210, 260), function=2)
    outer = build(2, 200, 400, ("trace", 200, 300), ("compile", 300, 400))
    profile = profile_of(tmp_path, [started(), inner, outer, ended(400)])
    check(profile)
    assert total_of(profile).seconds["trace"] == pytest.approx(0.05)
    assert total_of(profile).seconds["compile"] == pytest.approx(0.15)
    assert sum(built.build_ns for built in profile.builds) == ns(200)
    outer_built = profile.builds[0]
    assert outer_built.line.id == 2
    assert outer_built.stage_ns("trace") == ns(50)


def test_what_the_profile_cost_is_taken_from_outside_builds(tmp_path):
    lines = [started(), build(1, 200, 300, ("trace", 200, 300), own_ns=ns(5))]
    profile = profile_of(tmp_path, [*lines, ended(400, own_ns=ns(20))])
    check(profile)
    total = total_of(profile)
    assert total.seconds["profile"] == pytest.approx(0.02)
    assert total.seconds["trace"] == pytest.approx(0.1)
    assert total.seconds["unattributed"] == pytest.approx(0.18)
    assert total_of(profile, "thread").seconds["profile"] == pytest.approx(0.005)


def test_a_log_that_was_cut_off_reaches_until_its_last_line(tmp_path):
    profile = profile_of(tmp_path, SIMPLE[:3], run=(-20, 5000, 7))
    run, process, *_ = check(profile)
    assert process.cut_off
    assert process.wall_s == pytest.approx(0.4)
    assert process.seconds["end"] == 0
    assert run.wall_s == pytest.approx(5.02)
    assert run.seconds["python"] == pytest.approx(0.12)
    assert run.seconds["unattributed"] == pytest.approx(4.7)


def test_the_run_is_from_the_parents_clock(tmp_path):
    run, process, *_ = check(profile_of(tmp_path, SIMPLE, run=(-50, 1100, 7)))
    assert (run.scope, run.wall_s) == ("run", pytest.approx(1.15))
    assert run.seconds["python"] == pytest.approx(0.15)
    assert run.seconds["end"] == process.seconds["end"] == pytest.approx(0.1)


def test_processes_side_by_side_have_sums_of_their_own(tmp_path):
    child = [
        started(clock=350, process=300, pid=8),
        build(1, 350, 550, ("compile", 350, 550)),
        ended(600),
    ]
    found = check(profile_of(tmp_path, SIMPLE, child, run=(0, 1000, 7)))
    run = found[0]
    first, second = (total for total in found if total.scope == "process")
    assert first.wall_s == pytest.approx(1.0)
    assert second.wall_s == pytest.approx(0.3)
    assert second.seconds["compile"] == pytest.approx(0.2)
    # 300 to 400 in the first, 350 to 550 in the second: 250 of the clock.
    assert run.build_s + run.seconds["other"] == pytest.approx(0.25)


def test_a_process_that_replaced_itself_goes_on(tmp_path):
    before = [started(clock=100), build(1, 150, 200, ("trace", 150, 200)), ended(300, "exec")]
    after = [started(clock=400, process=0), build(1, 450, 500, ("trace", 450, 500)), ended(600)]
    run = check(profile_of(tmp_path, before, after, run=(0, 650, 7)))[0]
    assert run.seconds["trace"] == pytest.approx(0.1)
    assert run.seconds["python"] == pytest.approx(0.2)
    assert run.seconds["end"] == pytest.approx(0.05)


def running(at, begin=200, stage="compile", thread=MAIN):
    return events.Running(1, stage, 1, thread, ns(begin), ns(at))


def test_a_build_that_never_ended_is_there(tmp_path):
    lines = [started(), running(300, stage="trace"), running(900), running(1900)]
    profile = profile_of(tmp_path, lines)
    run = check(profile)[0]
    (unfinished,) = profile.unfinished
    assert unfinished.function.name == "loss"
    assert unfinished.call_site.line == 88
    assert profile.builds == ()
    assert run.seconds["trace"] == pytest.approx(0.7)
    assert run.seconds["compile"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    "later",
    [
        [build(1, 200, 500, ("compile", 200, 500))],  # it ended
        [build(1, 400, 500, ("compile", 400, 500))],  # the thread went on to another
        [samples(9_000, program=3)],  # nothing was heard of it for long
        [ended(400)],  # the program ended in good order
    ],
)
def test_a_build_that_ended_is_not_called_unfinished(tmp_path, later):
    profile = profile_of(tmp_path, [started(), running(300), *later])
    assert profile.unfinished == ()
    check(profile)


@pytest.mark.parametrize("seed", range(40))
def test_any_log_adds_up(tmp_path, seed):
    """Overlaps, gaps, spans outside their builds, times that run backwards, two processes."""
    rng = random.Random(seed)

    def two():
        a, b = rng.uniform(-50, 1000), rng.uniform(-50, 1000)
        return (a, b) if rng.random() < 0.1 else (min(a, b), max(a, b))

    logs = []
    for pid in range(7, 7 + rng.randint(1, 3)):
        lines = []
        for number in range(1, rng.randint(1, 30)):
            stages = [(rng.choice(["trace", "lower", "compile"]), *two()) for _ in range(3)]
            asked = tuple(
                request(rng.choice(["hit", "written", "unwritten"]), *two()[1:], write=rng.random())
                for _ in range(rng.randint(0, 2))
            )
            thread = rng.choice([1, 1, 2, 3])
            lines.append(build(number, *two(), *stages, thread=thread, requests=asked, own_ns=9999))
            lines.append(samples(two()[1], program=rng.randint(0, 3), jax=rng.randint(0, 3)))
        lines.append(events.Import(*map(ns, two()), MAIN, {}))
        lines.append(events.Backend(*map(ns, two()), 2, "cpu", ()))
        if rng.random() < 0.7:
            lines.append(ended(two()[1], own_ns=ns(rng.uniform(0, 100))))
        logs.append([started(clock=rng.uniform(0, 200), process=rng.uniform(-50, 300), pid=pid)])
        logs[-1] += lines
    run = rng.choice([None, (-100, 1200, 7), (0, 500, 99), (50, 0, 7)])
    check(profile_of(tmp_path, *logs, run=run))


def test_sharing_is_the_union_of_the_intervals():
    rng = np.random.default_rng(1)
    begins = rng.integers(0, 10_000, 200)
    ends = begins + rng.integers(-50, 300, 200)
    shared = share(rng.integers(0, 3, 200), begins, ends, 3, 100, 9_000)
    covered = np.zeros(10_400, bool)
    for begin, end in zip(begins, ends, strict=True):
        covered[begin : max(begin, end)] = True
    assert shared.seconds.sum() == pytest.approx(covered[100:9_000].sum() / 1e9)
    assert shared.idle_s(500, 700) == pytest.approx((~covered[500:700]).sum() / 1e9)
