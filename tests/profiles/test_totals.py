from __future__ import annotations

import random

import pytest

from harness.jaxhooks import events
from harness.profiles.totals import PARTS, totals
from tests.profiles.logs import MAIN, build, ended, ns, profile_of, request, samples, started


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


SPANS = ("trace", 300, 310), ("lower", 310, 330), ("compile", 330, 390)
SIMPLE = [
    started(clock=100),
    events.Import(ns(110), ns(210), MAIN, {"jax": "0.10.2"}),
    build(1, 300, 400, *SPANS, requests=(request("written", 60, 45, write=10),)),
    samples(1000, jax=15, program=5),
    ended(1000),
]


def test_a_process_adds_up_to_its_wall_time(tmp_path):
    run, *_ = check(profile_of(tmp_path, SIMPLE))
    assert run.wall_s == pytest.approx(1.0)
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
    assert {part: s for part, s in run.seconds.items() if s} == pytest.approx(expected)
    low, high = run.interval("jax")
    # Wilson, 15 of 20: 0.531 to 0.888.
    assert (low, high) == pytest.approx((0.531 * 0.7, 0.888 * 0.7), abs=1e-3)
    assert run.interval("compile") == (run.seconds["compile"],) * 2


def compiled(begin, end, number=1, **other):
    return build(number, begin, end, ("compile", begin, end), **other)


def traced(begin, end, number=1, **other):
    return build(number, begin, end, ("trace", begin, end), **other)


HIT = build(1, 200, 230, ("compile", 200, 220), requests=(request("hit", 15, load=5),))
TRACED, OWN = traced(200, 300), traced(200, 300, own_ns=ns(5))
INNER = compiled(210, 260, function=2)
THREADS = [compiled(200, 400), traced(300, 500, 2, thread=2), ended(600)]
CONTEXT = started(clock=150, how="context")
CUT = -20, 5000, 7
BACKEND = events.Backend(ns(210), ns(290), MAIN, "cpu", ("cpu:0",))
HUGE = ended(300, own_ns=ns(9e9))
AROUND = build(2, 200, 400, ("trace", 200, 300), ("compile", 300, 400))
CHILD = [started(350, 300, pid=8), compiled(350, 550), ended(600)]
BEFORE = [started(clock=100), traced(150, 200), ended(300, "exec")]
AFTER = [started(clock=400), traced(450, 500), ended(600)]
NO_CACHE = (request("unwritten", 60, 45, write=10, reason="no directory"),)


@pytest.mark.parametrize(
    ("logs", "run", "scope", "expected"),
    [
        ([[HIT, ended(300)]], None, "run", {"load": 0.02, "compile": 0}),
        ([[compiled(310, 390, requests=NO_CACHE)]], None, "run", {"compile": 0.08, "write": 0}),
        ([[BACKEND, TRACED, ended(300)]], None, "run", {"backend": 0.08, "trace": 0.02}),
        # What was not sampled is unattributed.
        ([[samples(150, library=4), TRACED, ended(500)]], None, "run", {"library": 0.05}),
        ([[samples(150, library=4), TRACED, ended(500)]], None, "run", {"unattributed": 0.25}),
        # A profile that claims to have cost more than there is; what it cost is outside builds.
        ([[TRACED, HUGE]], None, "run", {"trace": 0.1, "profile": 0.1}),
        ([[OWN, ended(400, own_ns=ns(20))]], None, "process", {"profile": 0.02, "trace": 0.1}),
        ([[OWN, ended(400, own_ns=ns(20))]], None, "thread", {"profile": 0.005}),
        # A context counts from its beginning; a build before the clock began is cut.
        ([[CONTEXT, TRACED, ended(600)]], None, "run", {"python": 0, "unattributed": 0.35}),
        ([[ended(400)]], None, "run", {"unattributed": 0.3}),
        ([[traced(-500, 150), ended(300)]], None, "run", {"trace": 0.15}),
        # Threads that build at once are counted once on the wall clock.
        ([THREADS], None, "process", {"build": 0.3, "compile": 0.15}),
        ([THREADS], None, "thread", {"build": 0.2, "main": True}),
        ([THREADS], None, "thread 2", {"build": 0.2, "main": False}),
        # A build inside another counts for itself.
        ([[INNER, AROUND]], None, "process", {"trace": 0.05, "compile": 0.15, "build": 0.2}),
        # A log that was cut off reaches until its last line.
        ([SIMPLE[:3]], CUT, "process", {"wall": 0.4, "end": 0}),
        ([SIMPLE[:3]], CUT, "run", {"wall": 5.02, "python": 0.12, "unattributed": 4.7}),
        # The run is from its parent's clock.
        ([SIMPLE], (-50, 1100, 7), "run", {"wall": 1.15, "python": 0.15, "end": 0.1}),
        ([SIMPLE], (-50, 1100, 7), "process", {"end": 0.1}),
        # Side by side: 300 to 400 in the first, 350 to 550 in the second: 250 of the clock.
        ([SIMPLE, CHILD], (0, 1000, 7), "process", {"wall": 1.0}),
        ([SIMPLE, CHILD], (0, 1000, 7), "process 2", {"wall": 0.3, "compile": 0.2}),
        ([SIMPLE, CHILD], (0, 1000, 7), "run", {"building": 0.25}),
        # A process that replaced itself goes on.
        ([BEFORE, AFTER], (0, 650, 7), "run", {"trace": 0.1, "python": 0.2, "end": 0.05}),
    ],
)
def test_each_part_has_its_seconds(tmp_path, logs, run, scope, expected):
    logs = [one if isinstance(one[0], events.Started) else [started(), *one] for one in logs]
    found = {}
    for total in check(profile_of(tmp_path, *logs, run=run)):
        also = {"wall": total.wall_s, "build": total.build_s, "main": total.main}
        also |= {"building": total.build_s + total.seconds["other"]}
        name = total.scope if total.scope not in found else f"{total.scope} 2"
        found.setdefault(name, {**total.seconds, **also})
    assert {part: found[scope][part] for part in expected} == pytest.approx(expected)


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
        logs.append([started(rng.uniform(0, 200), rng.uniform(-50, 300), pid), *lines])
    run = rng.choice([None, (-100, 1200, 7), (0, 500, 99), (50, 0, 7)])
    check(profile_of(tmp_path, *logs, run=run))
