"""A day of recording: what goes on is written less and less often, and stacks have an end."""

from __future__ import annotations

from pathlib import Path

import harness
from harness.watch import events, recorder
from harness.watch.call_sites import Places
from harness.watch.recorder import Recorder
from harness.watch.writer import Writer

S = 10**9
DAY = 86_400 * S


def test_a_day_has_some_thousand_lines_of_what_goes_on(monkeypatch):
    now = 0
    monkeypatch.setattr(recorder, "clock", lambda: now)
    recording = Recorder(0)
    lines = 0
    while now < DAY:
        pause = recording.pause_ns()
        assert pause == max(S, now // 600)
        now += pause
        lines += 1
    assert lines < 5_000
    assert recording.pause_ns(since_ns=now - 7 * S) == S


def compiled(number, file="program.py"):
    """Return code whose line is a number of its own."""
    return compile("\n" * number + "pass", file, "exec")


def test_late_stacks_are_one_line_of_the_program_and_the_answer_says_so(monkeypatch):
    monkeypatch.setattr(events, "MOST_STACKS", 3)
    monkeypatch.setattr(recorder, "MOST_PLACES", 5)
    recording, writer = Recorder(0), Writer(None)
    recording.outputs.append(writer)
    library = compile("pass", str(Path(harness.__file__).parents[1] / "site-packages/x.py"), "exec")
    for number in range(40):
        codes = (library, compiled(number), compiled(0, "main.py"))
        key = tuple(word for code in codes for word in (id(code), 2))
        recording._stack_of(Places(key, codes))
    stacks = [line for line in writer.kept if isinstance(line, events.Stack)]
    assert [len(line.frames) for line in stacks[:4]] == [3, 3, 3, 1]
    assert {(line.frames[0].file, len(line.frames)) for line in stacks[3:]} == {("program.py", 1)}
    assert len(recording._places) <= 5


def test_a_recording_in_which_stacks_were_cut_says_so(monkeypatch):
    monkeypatch.setattr(events, "MOST_STACKS", 0)
    from harness.profiles import figures

    monkeypatch.setattr(figures, "MOST_STACKS", 0)
    import jax

    with harness.profile() as profile:
        jax.jit(lambda x: x - 1)(3)
    assert any("only the innermost line" in line for line in profile.summary(lines=99))
