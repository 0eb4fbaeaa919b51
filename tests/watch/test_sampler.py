"""The sampler sees where threads are, what is still being built, and is not felt itself."""

from __future__ import annotations

import gc
import threading
import time
import types
import weakref
from collections import Counter

from harness.watch import sampler as sampling
from harness.watch.sampler import Sampler
from harness.watch.visits import JaxVisit


class Recorder:
    """Takes what the sampler says."""

    def __init__(self):
        self.builds = types.SimpleNamespace(open={})
        self.counts = Counter()
        self.told = []
        self.failures = []
        self.every_ns = 1_000_000_000

    def pause_ns(self, since_ns=None):
        return self.every_ns

    def sampled(self, interval_ns, counts):
        self.counts.update(counts)

    def running(self, build):
        self.told.append(build)

    def failed(self, error):
        self.failures.append(error)


def sampler(interval_ms=2.0):
    recorder = Recorder()
    return Sampler(recorder, interval_ms), recorder


def test_a_thread_is_seen_where_it_is_and_a_build_only_while_it_is_long(monkeypatch):
    monkeypatch.setattr(sampling, "LONG_NS", 50_000_000)
    looking, found = sampler()
    me = threading.get_ident()
    looking.start()
    time.sleep(0.1)
    found.builds.open[me] = JaxVisit("call", sampling.clock(), me)
    time.sleep(0.03)
    assert found.told == []
    time.sleep(0.1)
    looking.stop()
    assert len(found.told) == 1  # and not again before a second is over
    mine = Counter()
    for (thread, stack, whose), count in found.counts.items():
        if thread == me:
            mine[whose, stack.codes[0].co_filename] += count
    assert mine.most_common(1)[0][0] == ("program", __file__)
    names = {code.co_name for (_, stack, _) in found.counts for code in stack.codes}
    assert "_look" not in names
    assert found.failures == []


def test_where_looking_costs_too_much_it_looks_less_often(monkeypatch):
    monkeypatch.setattr(sampling, "SHARE", 0.0)
    looking, found = sampler()
    found.every_ns = 20_000_000
    looking.start()
    time.sleep(0.3)
    looking.stop()
    assert looking.interval_ns >= 8_000_000
    assert looking.own_ns > 0


def test_it_ends_by_an_error_of_its_own_only(monkeypatch):
    looking, found = sampler()
    found.builds = None
    looking.start()
    time.sleep(0.1)
    assert len(found.failures) == 1
    looking.stop()
    quiet, _ = sampler(0)
    before = threading.active_count()
    quiet.start()
    assert threading.active_count() == before
    quiet.stop()


def test_it_keeps_no_frame_alive():
    class Held:
        pass

    looking, found = sampler()
    looking.start()

    def work():
        held = Held()
        seen.append(weakref.ref(held))
        time.sleep(0.1)

    seen = []
    work()
    gc.collect()
    assert seen[0]() is None
    looking.stop()
    assert any(code.co_name == "work" for (_, stack, _) in found.counts for code in stack.codes)
