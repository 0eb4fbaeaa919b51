"""Builds that take long, from lines that the real writer wrote."""

from __future__ import annotations

import dataclasses

from harness.jaxhooks import events
from harness.jaxhooks.writer import encoded
from harness.profiles.slow import MANY, Often, Slow, SlowBuilds
from tests.profiles import logs

S = 1_000_000_000


def running(at_s, stage_s, stage="compile", thread=1):
    return events.Running(1, stage, 1, thread, S, round(at_s * S), round(stage_s * S))


def test_each_stage_is_returned_once_when_it_has_become_slow(tmp_path):
    slow = SlowBuilds(tmp_path / "later", 5)
    assert slow.look() == []
    slow = SlowBuilds(tmp_path, 5)
    path = tmp_path / "h-1-0.jsonl"
    first = logs.started(clock=0, pid=1)
    written = (
        first,
        logs.FUNCTION,
        logs.STACK,
        logs.build(1, 0, 1),
        running(4, 2),
        running(6.5, 2),
    )
    text = b"".join(map(encoded, written)) + b"\xff\n"
    path.write_bytes(text)
    assert slow.look() == []
    lines = running(7.5, 2), running(9, 9, "trace"), running(14.5, 9, "trace"), running(20, 3, "")
    more = b"".join(map(encoded, (*lines, running(7.5, 2), running(30, 2, thread=2))))
    slow_ones = []
    for position in range(0, len(more), 50):  # half a line waits for its rest
        with path.open("ab") as file:
            file.write(more[position : position + 50])
        slow_ones += slow.look()
    place = "loss", "train.py:88"
    assert slow_ones == [
        Slow("compile", *place, 5.5),
        Slow("trace", *place, 5.5),
        Slow("compile", *place, 28.0),
    ]
    assert slow.look() == []


def test_a_function_is_returned_once_when_it_was_built_often_and_none_of_jaxs(tmp_path):
    jaxs = dataclasses.replace(logs.FUNCTION, id=2, name="add", origin="jax")
    path = tmp_path / "h-1-0.jsonl"
    head = logs.started(clock=0, pid=1), logs.FUNCTION, jaxs, logs.STACK
    builds = [logs.build(n, n, n + 1) for n in range(1, MANY + 1)]
    others = [dataclasses.replace(one, id=100 + one.id, function=2) for one in builds] * 2
    path.write_bytes(b"".join(map(encoded, (*head, *builds, *others))))
    slow = SlowBuilds(tmp_path, 5)
    assert slow.look() == []
    for _ in range(2):
        with path.open("ab") as file:
            file.write(encoded(logs.build(200, 200, 201)))
    assert slow.look() == [Often("loss", "train.py:88")]
    assert slow.look() == []
