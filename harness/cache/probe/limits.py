"""Rows about limits: of the cache's size, of the disk, and of how short a compilation may be."""

from __future__ import annotations

from harness.cache.probe import mounts
from harness.cache.probe.findings import NotApplicable, Unmet
from harness.cache.probe.judging import Outcome, Row, hits, told
from harness.cache.probe.runner import Bench, size_bytes

CAP = "JAX_COMPILATION_CACHE_MAX_SIZE"

THRESHOLD_S = 1.0
"""What jax_persistent_cache_min_compile_time_secs is when nobody sets it."""


def size_cap(bench: Bench) -> Outcome:
    """Store four entries where two and a half fit; then run the last one again.

    What was used last must stay, and the entries together must be no bigger than the cap. `-atime`
    files and the lock file are not counted.
    """
    one_bytes = size_bytes(bench.filled())
    cap_bytes = one_bytes * 5 // 2
    cache, env = bench.folder(), {CAP: str(cap_bytes)}
    filled = bench.fill(cache, "several", env=env)
    again = bench.run("last again", cache, "several", calls=["fourth"], env=env)
    kept = filled.bytes_after <= cap_bytes
    size = f"{filled.files_after} of 4 entries kept, {filled.bytes_after} of {cap_bytes} bytes"
    evicted = filled.files_after < 4
    return Outcome(
        kept and evicted and again.hit, f"{size}; the last one {told(again)} in the next process"
    )


def cap_without_filelock(bench: Bench) -> Outcome:
    """Set a size cap where the module `filelock` is missing, which JAX does not install.

    JAX warns once per process and then runs without any cache.
    """
    cache, env = bench.folder(), {CAP: "1000000"}
    first = bench.run("fill", cache, env=env, hide=["filelock"])
    again = bench.run("again", cache, env=env, hide=["filelock"])
    found = hits(again)
    if first.fine and again.fine and not again.files_after:
        return Outcome(False, f"{told(again)}; nothing is stored")
    return found


def full_disk(bench: Bench) -> Outcome:
    """Run on a full disk, then make room, and run twice more.

    The program runs, with a warning. But the failed write leaves an empty or partial file under
    the entry's name, and as with `truncated` nobody writes over it: room on the disk does not
    bring the cache back.
    """
    disk = bench.folder()
    with mounts.small_disk(disk):
        cache = disk / "cache"
        cache.mkdir()
        ballast = mounts.fill_up(disk)
        full = bench.run("disk full", cache)
        ballast.unlink()
        freed = bench.run("room again", cache)
        later = bench.run("later", cache)
    return Outcome(
        full.fine and freed.fine and later.hit,
        f"{told(full)}; with room again {told(freed)}; the run after it {told(later)}",
    )


def default_threshold(bench: Bench) -> Outcome:
    """Compile something that takes some tenths of a second, twice, with no threshold set.

    By default only what takes XLA a second or more is stored (and below that no miss is counted
    either): on a CPU hardly anything is. JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 stores all.
    """
    cache = bench.folder()
    env: dict[str, str | None] = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": None}
    first = bench.run("fill", cache, "slow", env=env)
    if not first.fine:
        raise Unmet(f"the first process {told(first)}")
    if first.call_s >= THRESHOLD_S:
        raise NotApplicable(f"the compilation took {first.call_s:.1f} s on this machine, 1 or more")
    again = bench.run("again", cache, "slow", env=env)
    stored = "is stored" if again.files_before else "is not stored"
    return Outcome(
        again.hit, f"a first call of {first.call_s:.2f} s {stored}; the next process {told(again)}"
    )


ROWS = (
    Row("size-cap", "size cap with eviction", "entries fit; the last one hits", size_cap),
    Row("cap-without-filelock", "size cap without filelock", "hits", cap_without_filelock),
    Row("full-disk", "full disk", "runs; with room again, hits", full_disk),
    Row("default-threshold", "default threshold (1 s), short compile", "hits", default_threshold),
)
