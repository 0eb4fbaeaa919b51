"""Rows about entries that are not whole: does the program run, and is the entry ever repaired?"""

from __future__ import annotations

from collections.abc import Callable

from harness.cache.probe.findings import NotApplicable, Unmet
from harness.cache.probe.judging import Outcome, Row, heals, told
from harness.cache.probe.runner import Bench, entries

CAP = {"JAX_COMPILATION_CACHE_MAX_SIZE": "1000000"}


def _damaged(bench: Bench, change: Callable[[bytes], bytes]) -> Outcome:
    cache = bench.filled()
    for path in entries(cache):
        path.write_bytes(change(path.read_bytes()))
    return heals(bench.run("damaged", cache), bench.run("later", cache))


def truncated(bench: Bench) -> Outcome:
    """Cut the entry in half.

    JAX warns, compiles, counts a miss written, and does not write: an entry of that name is there.
    Every later process pays for the compilation and the warning, until somebody deletes the file.
    """
    return _damaged(bench, lambda data: data[: len(data) // 2])


def empty(bench: Bench) -> Outcome:
    """Make the entry 0 bytes long, as a full disk or a crash leaves it.

    The same as `truncated`: never repaired.
    """
    return _damaged(bench, lambda data: b"")


def bit_flipped(bench: Bench) -> Outcome:
    """Flip one bit in the middle of the entry.

    The check sum of the compression notices, so no wrong program is run; the entry is never
    repaired.
    """

    def flip(data: bytes) -> bytes:
        middle = len(data) // 2
        return data[:middle] + bytes([data[middle] ^ 0x10]) + data[middle + 1 :]

    return _damaged(bench, flip)


def killed_in_write(bench: Bench) -> Outcome:
    """Kill a process (SIGKILL) in the middle of its write, as the out-of-memory killer would.

    The entry is written in place, not to a temporary file that is then renamed: half an entry
    stays behind, and is never repaired. One preempted job makes all later ones cold.
    """
    cache = bench.folder()
    killed = bench.run("killed", cache, fault={"at": "half", "then": "kill"})
    if not killed.killed:
        raise NotApplicable("this JAX does not write where the process was to be killed")
    if not killed.files_after:
        raise Unmet("the killed process left nothing behind")
    return heals(bench.run("next", cache), bench.run("later", cache))


def killed_before_atime(bench: Bench) -> Outcome:
    """Kill a process under a size cap between an entry and its `-atime` file; then store another.

    Up to jax 0.11.0 one such orphan made the search for what to evict fail, and with it every
    write of every later program, while reads went on (jax#39880).
    """
    cache = bench.folder()
    fault = {"at": "atime", "then": "kill"}
    killed = bench.run("killed", cache, env=CAP, fault=fault)
    if not killed.killed:
        raise NotApplicable("this JAX does not write where the process was to be killed")
    other = bench.run("other program", cache, "several", calls=["first"], env=CAP)
    later = bench.run("later", cache, "several", calls=["first"], env=CAP)
    return Outcome(
        other.fine and later.hit, f"another program {told(other)}; the run after it {told(later)}"
    )


HEALS = "runs; the run after it hits"

ROWS = (
    Row("killed-in-write", "killed (SIGKILL) in the middle of a write", HEALS, killed_in_write),
    Row(
        "killed-before-atime",
        "killed under a cap, between entry and time stamp",
        "another program is stored",
        killed_before_atime,
    ),
    Row("truncated", "truncated entry", HEALS, truncated),
    Row("empty", "empty entry", HEALS, empty),
    Row("bit-flipped", "entry with one bit flipped", HEALS, bit_flipped),
)
