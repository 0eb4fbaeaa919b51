"""Where threads are and what is still built is seen, is not felt, and has an end in a day's run."""

import gc
import threading
import time
import types
import weakref
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import jax

import harness
from harness.jaxhooks import events, recorder
from harness.jaxhooks import sampler as sampling
from harness.jaxhooks.call_sites import Places
from harness.jaxhooks.recorder import Recorder
from harness.jaxhooks.sampler import Sampler
from harness.jaxhooks.visits import JaxVisit
from harness.jaxhooks.writer import Writer
from harness.profiles import figures
from tests.jaxhooks.recorded import profiled

S = 10**9
DAY = 86_400 * S


def sampler(interval_ms=2.0):
    """Return a sampler, and who is told."""
    found = Mock(counts=Counter(), builds=types.SimpleNamespace(open={}))
    found.pause_ns.return_value = S
    found.sampled.side_effect = lambda interval_ns, counts: found.counts.update(counts)
    return Sampler(found.builds.open, found, interval_ms), found


def test_a_thread_is_seen_where_it_is_and_a_build_only_while_it_is_long(monkeypatch):
    monkeypatch.setattr(sampling, "LONG_NS", 50_000_000)
    looking, found = sampler()
    me = threading.get_ident()
    looking.start()
    time.sleep(0.1)
    found.builds.open[me] = JaxVisit("call", sampling.clock(), me)
    time.sleep(0.03)
    found.running.assert_not_called()
    time.sleep(0.1)
    looking.stop()
    found.running.assert_called_once()  # and not again before a second is over
    mine = Counter()
    for (thread, stack, whose), count in found.counts.items():
        if thread == me:
            mine[whose, stack.codes[0].co_filename] += count
    assert mine.most_common(1)[0][0] == ("program", __file__)
    names = {code.co_name for (_, stack, _) in found.counts for code in stack.codes}
    assert "_look" not in names
    found.failed.assert_not_called()


def test_where_looking_costs_too_much_it_looks_less_often(monkeypatch):
    monkeypatch.setattr(sampling, "SHARE", 0.0)
    looking, found = sampler()
    found.pause_ns.return_value = 20_000_000
    looking.start()
    ends = time.monotonic() + 60
    while looking.interval_ns < 8_000_000 and time.monotonic() < ends:
        time.sleep(0.01)
    looking.stop()
    assert looking.interval_ns >= 8_000_000  # of 2, twice doubled
    assert looking.own_ns > 0


def test_it_ends_by_an_error_of_its_own_only(monkeypatch):
    looking, found = sampler()
    looking.building = None
    looking.start()
    time.sleep(0.1)
    found.failed.assert_called_once()
    looking.stop()
    quiet, _ = sampler(0)
    before = threading.active_count()
    quiet.start()
    assert threading.active_count() == before
    quiet.stop()


def test_it_keeps_no_frame_alive():
    def work():
        held = {1}
        time.sleep(0.1)
        return weakref.ref(held)

    looking, found = sampler()
    looking.start()
    seen = work()
    gc.collect()
    assert seen() is None
    looking.stop()
    assert any(code.co_name == "work" for (_, stack, _) in found.counts for code in stack.codes)


# --- a day ----------------------------------------------------------------------------------------


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
    monkeypatch.setattr(figures, "MOST_STACKS", 0)
    profile = profiled(lambda: jax.jit(lambda x: x - 1)(3))
    assert any("only the innermost line" in line for line in profile.summary(lines=99))
