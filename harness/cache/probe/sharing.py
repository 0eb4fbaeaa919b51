"""Rows about a directory that several processes use, or that some of them may only read."""

from __future__ import annotations

from harness.cache.probe import mounts
from harness.cache.probe.findings import NotApplicable
from harness.cache.probe.judging import Outcome, Row, hits, told
from harness.cache.probe.runner import Bench

CAP = {"JAX_COMPILATION_CACHE_MAX_SIZE": "1000000"}


def read_only_filled(bench: Bench) -> Outcome:
    """Read a directory that cannot be written to: one baked into an image, or another user's."""
    cache = bench.filled()
    with mounts.read_only(cache):
        return hits(bench.run("read-only", cache))


def read_only_empty(bench: Bench) -> Outcome:
    """Run where nothing can be stored: the program must not suffer.

    JAX warns once per program that the write failed, and counts each as a miss written.
    """
    cache = bench.folder()
    with mounts.read_only(cache):
        run = bench.run("read-only", cache)
    return Outcome(run.fine, told(run))


def read_only_capped(bench: Bench) -> Outcome:
    """Read a read-only directory under a size cap.

    Under a cap even a reader takes the lock file and stamps the entry's time of use; where neither
    can be written, what is stored cannot be read. Readers must not set a cap.
    """
    cache = bench.filled()
    with mounts.read_only(cache):
        return hits(bench.run("read-only", cache, env=CAP))


def two_writers(bench: Bench) -> Outcome:
    """Let two processes write one entry at once, each held at the write until both are there.

    Without a cap neither takes a lock, and both compile: work done twice. Two compilations of one
    program differ by a few bytes; what was written last stays, and it can be read.
    """
    cache, signs = bench.folder(), bench.folder()
    go = signs / "go"
    started = []
    try:
        for name in ("one", "two"):
            fault = {"at": "before", "then": "wait", "ready": str(signs / name), "go": str(go)}
            started.append(bench.start(f"writer {name}", cache, fault=fault))
        for name, process in zip(("one", "two"), started, strict=True):
            process.wait_until(signs / name)
        met = all((signs / name).exists() for name in ("one", "two"))
        go.touch()
        writers = [process.finish() for process in started]
    finally:
        for process in started:
            process.stop()
    if not met and all(run.fine for run in writers):
        raise NotApplicable("the two writers could not be held at the write")
    reader = bench.run("reader", cache)
    fine = met and all(run.fine and not run.warnings for run in writers) and reader.hit
    return Outcome(
        fine, f"{told(writers[0])}; {told(writers[1])}; the reader after them {told(reader)}"
    )


def reader_during_write(bench: Bench) -> Outcome:
    """Read an entry while another process is half-way through writing it.

    The entry is written in place, under its own name, and without a cap no lock is taken: a reader
    can see half of it. It warns and compiles; nothing lasting comes of it if the writer finishes.
    """
    cache, signs = bench.folder(), bench.folder()
    ready, go = signs / "ready", signs / "go"
    fault = {"at": "half", "then": "wait", "ready": str(ready), "go": str(go)}
    writer = bench.start("writer", cache, fault=fault)
    try:
        writer.wait_until(ready)
        if not ready.exists():
            raise NotApplicable("the writer could not be held in the middle of the write")
        reader = bench.run("reader", cache)
        go.touch()
        written = writer.finish()
    finally:
        writer.stop()
    later = bench.run("later", cache)
    fine = reader.fine and not reader.warnings and written.fine and later.hit
    return Outcome(fine, f"the reader {told(reader)}; the run after it {told(later)}")


ROWS = (
    Row("read-only", "read-only directory, filled", "hits", read_only_filled),
    Row("read-only-empty", "read-only directory, empty", "the program runs", read_only_empty),
    Row("read-only-capped", "read-only directory, filled, size cap set", "hits", read_only_capped),
    Row("two-writers", "two writers at once", "both run; the next hits", two_writers),
    Row(
        "reader-during-write",
        "reader while another process writes",
        "no warning; the next hits",
        reader_during_write,
    ),
)
