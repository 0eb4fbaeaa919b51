"""The rows of the probe: what a user expects, and the experiment that tries it.

Of a row that fails everywhere the page says what stands in its docstring below the first line.
"""

import inspect
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

from tools.probe import bench as places
from tools.probe.bench import NotApplicable, Unmet, entries, size_bytes

COMMENT = "# A comment above the function.\n"
CAP = {"JAX_COMPILATION_CACHE_MAX_SIZE": "1000000"}
TWO_DEVICES = {"JAX_NUM_CPU_DEVICES": "2"}

THRESHOLD_S = 1.0
"""What jax_persistent_cache_min_compile_time_secs is when nobody sets it."""

ROWS = {}
HEALS = "runs; the run after it hits"


@dataclass(frozen=True)
class Row:
    """One experiment; it returns whether all went as expected, and what happened in words."""

    name: str
    title: str
    expectation: str
    experiment: Callable

    @property
    def advice(self):
        """Why JAX does what it does, and what helps."""
        return " ".join(inspect.getdoc(self.experiment).partition("\n\n")[2].split())


def row(name, title, expectation="hits"):
    def enter(experiment):
        ROWS[name] = Row(name, title, expectation, experiment)
        return experiment

    return enter


def hits(run):
    """The process must be answered by the cache, in silence."""
    return run.hit and not run.warnings, run.told


def heals(damaged, later):
    """The process that meets the damage must run, and the one after it must be answered."""
    return damaged.fine and later.hit, f"{damaged.told}; the run after it {later.told}"


def twice(bench, program, **options):
    """Fill a cache with a program, and run it again."""
    cache = bench.folder()
    bench.fill(cache, program, **options)
    return hits(bench.run("again", cache, program, **options))


def edit(bench, old, new, **options):
    """Run a file, run it again, edit it where it is, and run it once more; give the last two."""
    file, cache = bench.folder() / "plain.py", bench.folder()
    text = (places.HERE / "plain.py").read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    bench.fill(cache, file=file, **options)
    again = bench.run("not edited", cache, file=file, **options)
    file.write_text(text.replace(old, new), encoding="utf-8")
    return again, bench.run("edited", cache, file=file, **options)


def only(control, changed):
    """Without the change the cache must answer, with it the process must compile."""
    missed = changed.fine and changed.requests > 0 and not changed.hits
    return control.hit and missed, f"{control.told} unchanged; {changed.told} changed"


# What an entry is known by: which changes may and which must not cost a compilation


@row("same-program", "same program, another process")
def same_program(bench):
    """Run one program in two processes, one after the other: what the cache is for."""
    return hits(bench.run("again", bench.filled()))


@row("hash-seed", "restarted with another PYTHONHASHSEED")
def other_hash_seed(bench):
    """Run again under another PYTHONHASHSEED: nothing in the key may depend on the order of a set.

    The first process had the seed 0, the second has 12345.
    """
    cache = bench.folder()
    bench.fill(cache, env={"PYTHONHASHSEED": "0"})
    return hits(bench.run("again", cache, env={"PYTHONHASHSEED": "12345"}))


@row("working-directory", "other working directory, absolute path")
def absolute_directory(bench):
    """Run again from another working directory, with the cache's directory given absolutely."""
    return hits(bench.run("again", bench.filled(), cwd=bench.folder()))


@row("relative-directory", "other working directory, relative path")
def relative_directory(bench):
    """Run again from another working directory, with the cache's directory given relatively.

    JAX resolves the path where the process stands, so each working directory gets a cache of its
    own, and no word is said. asv, which starts each benchmark in a folder of its own, never hits.
    """
    first, second = bench.folder(), bench.folder()
    bench.fill(first / "cache", named="cache", cwd=first)
    run = bench.run("again", second / "cache", named="cache", cwd=second)
    if run.fine and not run.hit and run.files_after:
        return False, "compiles, into a second cache in the new working directory"
    return hits(run)


@row("moved-directory", "directory moved")
def moved_directory(bench):
    """Rename the directory, as a CI job does that restores a cache to another path.

    Up to jax 0.10.2 the path of XLA's autotuning cache, a folder inside the directory, is among the
    compile options that are hashed, on the CPU too: every entry is lost. Since 0.11.0 the path is
    left out. On 0.10.2 JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES=none helps.
    """
    place = bench.folder() / "moved"
    bench.filled().rename(place)
    return hits(bench.run("moved", place))


@row("copied-directory", "directory copied")
def copied_directory(bench):
    """Copy the directory and use the copy, as a container image does that brings its cache along.

    jax 0.10.2 compiles again, for the reason given under `moved-directory`.
    """
    place = bench.folder() / "copy"
    shutil.copytree(bench.filled(), place)
    return hits(bench.run("copied", place))


@row("edited-comment", "comment above the function edited")
def edited_comment(bench):
    """Add two lines to the comment above the function: every line number below it changes.

    Line numbers are stripped before the key is made (unless `include-metadata`, below).
    """
    return hits(edit(bench, COMMENT, COMMENT + "# It says more.\n# And more.\n")[1])


@row("wraps", "function wrapped by functools.wraps")
def wrapped(bench):
    """Wrap the function in a decorator that uses functools.wraps: name and program stay the same.

    Without functools.wraps the name changes, and with it the key (see `renamed`).
    """
    return hits(bench.run("wrapped", bench.filled(), "wrapped"))


@row("renamed", "function renamed")
def renamed(bench):
    """Give the function another name and change nothing else.

    The name of the function is the name of the module that XLA compiles, and the module is hashed
    with its name: a renamed function is a new program.
    """
    return hits(edit(bench, "subject", "renamed")[1])


@row("include-metadata", "line moved, metadata in the key", "compiles")
def include_metadata(bench):
    """Add a line above the function under jax_compilation_cache_include_metadata_in_key.

    The flag puts source lines into the key, for those who need profiles to point at the right
    line: then a moved line has to be compiled again.
    """
    env = {"JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY": "true"}
    return only(*edit(bench, COMMENT, COMMENT * 2, env=env))


@row("xla-flags", "two processes, different XLA_FLAGS", "compiles")
def other_xla_flags(bench):
    """Run again under XLA_FLAGS that change the arithmetic: a hit would give the wrong program."""
    cache = bench.filled()
    same = bench.run("same flags", cache)
    env = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    return only(same, bench.run("other flags", cache, env=env))


@row("default-flag", "XLA flag given with its default value")
def default_flag(bench):
    """Run again with a flag in XLA_FLAGS that has its default value, so that nothing changes.

    JAX hashes the text of XLA_FLAGS: the same executable is stored a second time under another key.
    `harness cache doctor` reports it as a duplicate.
    """
    env = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=false"}
    return hits(bench.run("default flag", bench.filled(), env=env))


@row("unused-argument", "unused argument of another shape")
def unused_argument(bench):
    """Give an argument that the function does not use another shape.

    jit drops it before the module is made: programs that differ in it alone have one key. The
    process traces again, and compiles nothing.
    """
    cache = bench.folder()
    bench.fill(cache, "unused", names=["3"])
    return hits(bench.run("another shape", cache, "unused", names=["5"]))


@row("late-directory", "another directory set after the first compile", "stored in the new one")
def late_directory(bench):
    """Set jax_compilation_cache_dir to another directory once something was compiled.

    The settings of the cache are frozen at its first use: the second program is stored in the first
    directory, and no word is said. Set it before the first compile.
    """
    cache, other = bench.folder(), bench.folder()
    run = bench.run("late", cache, "late", names=[str(other)])
    stored = len(entries(other))
    where = "in the new one" if stored else "in the first one"
    return run.fine and stored > 0, f"{run.told}; the second program is stored {where}"


@row("custom-partitioning", "custom_partitioning")
def custom_partitioning(bench):
    """Run a function with `custom_partitioning`, over two devices, in two processes.

    The address of the partitioning callback stands in the program that is hashed, and differs from
    process to process: it never hits, and each run leaves one more entry behind (jax#21159). Two
    processes may have one address by chance, so a hit is asked for again, twice.
    """
    cache = bench.folder()
    bench.fill(cache, "partitioned", env=TWO_DEVICES)
    for _ in range(3):
        passed, happened = hits(bench.run("again", cache, "partitioned", env=TWO_DEVICES))
        if not passed:
            break
    return passed, happened


@row("custom-partitioning-flag", "custom_partitioning, pointer left out of the key")
def custom_partitioning_flag(bench):
    """Do the same under jax_remove_custom_partitioning_ptr_from_cache_key, the remedy."""
    env = {**TWO_DEVICES, "JAX_REMOVE_CUSTOM_PARTITIONING_PTR_FROM_CACHE_KEY": "true"}
    return twice(bench, "partitioned", env=env)


@row("host-callback", "host callback (pure_callback)")
def host_callback(bench):
    """Run a function with `pure_callback` in two processes.

    Up to jax 0.10.2 a program with host callbacks is never stored, and no word is said: neither
    `jax.debug.print` nor `io_callback` may be in what is to be cached. Since 0.11.0 it is stored,
    and the callbacks are put back when it is loaded.
    """
    return twice(bench, "callback")


# A directory that several processes use, or that some of them may only read


@contextmanager
def held(bench, cache, at, *labels):
    """Have processes stop at a place in a write; give them, if all are there, and the signal."""
    signs = bench.folder()
    fault = {"at": at, "then": "wait", "go": str(signs / "go")}
    started = []
    try:
        for label in labels:
            ready = {"ready": str(signs / label)}
            started.append(bench.start(label, cache, fault={**fault, **ready}))
        for process in started:
            process.wait_until(signs / process.label)
        yield started, len(list(signs.iterdir())) == len(labels), (signs / "go").touch
    finally:
        for process in started:
            process.stop()


@row("read-only", "read-only directory, filled")
def read_only_filled(bench):
    """Read a directory that cannot be written to: one baked into an image, or another user's."""
    cache = bench.filled()
    with places.read_only(cache):
        return hits(bench.run("read-only", cache))


@row("read-only-empty", "read-only directory, empty", "the program runs")
def read_only_empty(bench):
    """Run where nothing can be stored: the program must not suffer.

    JAX warns once per program that the write failed, and counts each as a miss written.
    """
    cache = bench.folder()
    with places.read_only(cache):
        run = bench.run("read-only", cache)
    return run.fine, run.told


@row("read-only-capped", "read-only directory, filled, size cap set")
def read_only_capped(bench):
    """Read a read-only directory under a size cap.

    Under a cap even a reader takes the lock file and stamps the entry's time of use; where neither
    can be written, what is stored cannot be read. Readers must not set a cap.
    """
    cache = bench.filled()
    with places.read_only(cache):
        return hits(bench.run("read-only", cache, env=CAP))


@row("two-writers", "two writers at once", "both run; the next hits")
def two_writers(bench):
    """Let two processes write one entry at once, each held at the write until both are there.

    Without a cap neither takes a lock, and both compile: work done twice. Two compilations of one
    program differ by a few bytes; what was written last stays, and it can be read.
    """
    cache = bench.folder()
    with held(bench, cache, "before", "writer one", "writer two") as (writers, met, go):
        go()
        one, two = (process.finish() for process in writers)
    if not met and one.fine and two.fine:
        raise NotApplicable("the two writers could not be held at the write")
    reader = bench.run("reader", cache)
    fine = met and one.fine and two.fine and not one.warnings + two.warnings and reader.hit
    return fine, f"{one.told}; {two.told}; the reader after them {reader.told}"


@row("reader-during-write", "reader while another process writes", "no warning; the next hits")
def reader_during_write(bench):
    """Read an entry while another process is half-way through writing it.

    The entry is written in place, under its own name, and without a cap no lock is taken: a reader
    can see half of it. It warns and compiles; nothing lasting comes of it if the writer finishes.
    """
    cache = bench.folder()
    with held(bench, cache, "half", "writer") as ((writer,), met, go):
        if not met:
            raise NotApplicable("the writer could not be held in the middle of the write")
        reader = bench.run("reader", cache)
        go()
        written = writer.finish()
    later = bench.run("later", cache)
    fine = reader.fine and not reader.warnings and written.fine and later.hit
    return fine, f"the reader {reader.told}; the run after it {later.told}"


# Entries that are not whole: does the program run, and is the entry ever repaired?


def killed_at(bench, cache, place, **options):
    """Kill a process at a place in its write."""
    run = bench.run("killed", cache, fault={"at": place, "then": "kill"}, **options)
    if not run.killed:
        raise NotApplicable("this JAX does not write where the process was to be killed")
    return run


@row("killed-in-write", "killed (SIGKILL) in the middle of a write", HEALS)
def killed_in_write(bench):
    """Kill a process (SIGKILL) in the middle of its write, as the out-of-memory killer would.

    The entry is written in place, not to a temporary file that is then renamed: half an entry
    stays behind, and is never repaired. One preempted job makes all later ones cold.
    """
    cache = bench.folder()
    killed = killed_at(bench, cache, "half")
    if not killed.files_after:
        raise Unmet("the killed process left nothing behind")
    return heals(bench.run("next", cache), bench.run("later", cache))


@row(
    "killed-before-atime",
    "killed under a cap, between entry and time stamp",
    "another program is stored",
)
def killed_before_atime(bench):
    """Kill a process under a size cap between an entry and its `-atime` file; then store another.

    Up to jax 0.11.0 one such orphan made the search for what to evict fail, and with it every
    write of every later program, while reads went on (jax#39880).
    """
    cache = bench.folder()
    killed_at(bench, cache, "atime", env=CAP)
    other = bench.run("other program", cache, "several", names=["first"], env=CAP)
    later = bench.run("later", cache, "several", names=["first"], env=CAP)
    fine = other.fine and later.hit
    return fine, f"another program {other.told}; the run after it {later.told}"


def damaged(bench, change):
    cache = bench.filled()
    for path in entries(cache):
        path.write_bytes(change(path.read_bytes()))
    return heals(bench.run("damaged", cache), bench.run("later", cache))


@row("truncated", "truncated entry", HEALS)
def truncated(bench):
    """Cut the entry in half.

    JAX warns, compiles, counts a miss written, and does not write: an entry of that name is there.
    Every later process pays for the compilation and the warning, until somebody deletes the file.
    """
    return damaged(bench, lambda data: data[: len(data) // 2])


@row("empty", "empty entry", HEALS)
def empty(bench):
    """Make the entry 0 bytes long, as a full disk or a crash leaves it.

    The same as `truncated`: never repaired.
    """
    return damaged(bench, lambda data: b"")


@row("bit-flipped", "entry with one bit flipped", HEALS)
def bit_flipped(bench):
    """Flip one bit in the middle of the entry.

    The check sum of the compression notices, so no wrong program is run; the entry is never
    repaired.
    """

    def flip(data):
        middle = len(data) // 2
        return data[:middle] + bytes([data[middle] ^ 0x10]) + data[middle + 1 :]

    return damaged(bench, flip)


# Limits: of the cache's size, of the disk, and of how short a compilation may be


@row("size-cap", "size cap with eviction", "entries fit; the last one hits")
def size_cap(bench):
    """Store four entries where two and a half fit; then run the last one again.

    What was used last must stay, and the entries together must be no bigger than the cap. `-atime`
    files and the lock file are not counted.
    """
    cap_bytes = size_bytes(bench.filled()) * 5 // 2
    cache, env = bench.folder(), {"JAX_COMPILATION_CACHE_MAX_SIZE": str(cap_bytes)}
    filled = bench.fill(cache, "several", env=env)
    again = bench.run("last again", cache, "several", names=["fourth"], env=env)
    kept = filled.bytes_after <= cap_bytes
    size = f"{filled.files_after} of 4 entries kept"
    fine = kept and filled.files_after < 4 and again.hit
    return fine, f"{size}; the last one {again.told} in the next process"


@row("cap-without-filelock", "size cap without filelock")
def cap_without_filelock(bench):
    """Set a size cap where the module `filelock` is missing, which JAX does not install.

    JAX warns once per process and then runs without any cache.
    """
    cache = bench.folder()
    first = bench.run("fill", cache, env=CAP, hide=["filelock"])
    again = bench.run("again", cache, env=CAP, hide=["filelock"])
    if first.fine and again.fine and not again.files_after:
        return False, f"{again.told}; nothing is stored"
    return hits(again)


@row("full-disk", "full disk", "runs; with room again, hits")
def full_disk(bench):
    """Run on a full disk, then make room, and run twice more.

    The program runs, with a warning. But the failed write leaves an empty or partial file under
    the entry's name, and as with `truncated` nobody writes over it: room on the disk does not
    bring the cache back.
    """
    disk = bench.folder()
    with places.small_disk(disk):
        cache, ballast = disk / "cache", disk / "ballast"
        cache.mkdir()
        ballast.write_bytes(bytes(shutil.disk_usage(disk).free))
        full = bench.run("disk full", cache)
        ballast.unlink()
        freed = bench.run("room again", cache)
        later = bench.run("later", cache)
    fine = full.fine and freed.fine and later.hit
    return fine, f"{full.told}; with room again {freed.told}; the run after it {later.told}"


@row("default-threshold", "default threshold (1 s), short compile")
def default_threshold(bench):
    """Compile something that takes some tenths of a second, twice, with no threshold set.

    By default only what takes XLA a second or more is stored (and below that no miss is counted
    either): on a CPU hardly anything is. JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 stores all.
    """
    cache = bench.folder()
    env = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": None}
    first = bench.run("fill", cache, "slow", env=env)
    if not first.fine:
        raise Unmet(f"the first process {first.told}")
    if first.call_s >= THRESHOLD_S:
        raise NotApplicable(f"the compilation took {first.call_s:.1f} s on this machine, 1 or more")
    again = bench.run("again", cache, "slow", env=env)
    stored = "is stored" if again.files_before else "is not stored"
    return again.hit, f"a first call below 1 s {stored}; the next process {again.told}"
