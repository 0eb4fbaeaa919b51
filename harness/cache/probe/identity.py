"""Rows about what an entry is known by: which changes may and which must not cost a compilation."""

from __future__ import annotations

import shutil
from typing import Any

from harness.cache.probe.findings import Run
from harness.cache.probe.judging import Outcome, Row, hits, misses, told
from harness.cache.probe.runner import CHILDREN, Bench

COMMENT = "# A comment above the function.\n"


def _edit(bench: Bench, old: str, new: str, **options: Any) -> tuple[Run, Run]:
    """Run a file, run it again, edit it where it is, and run it once more; give the last two."""
    file, cache = bench.folder() / "plain.py", bench.folder()
    text = (CHILDREN / "plain.py").read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    bench.fill(cache, file, **options)
    again = bench.run("not edited", cache, file, **options)
    file.write_text(text.replace(old, new), encoding="utf-8")
    return again, bench.run("edited", cache, file, **options)


def _only(control: Run, changed: Run) -> Outcome:
    """Without the change the cache must answer, with it the process must compile."""
    found = misses(changed)
    return Outcome(
        control.hit and found.passed, f"{told(control)} unchanged; {found.happened} changed"
    )


def same_program(bench: Bench) -> Outcome:
    """Run one program in two processes, one after the other: what the cache is for."""
    return hits(bench.run("again", bench.filled()))


def other_hash_seed(bench: Bench) -> Outcome:
    """Run again under another PYTHONHASHSEED: nothing in the key may depend on the order of a set.

    The first process had the seed 0, the second has 12345.
    """
    return hits(bench.run("again", bench.filled(), env={"PYTHONHASHSEED": "12345"}))


def absolute_directory(bench: Bench) -> Outcome:
    """Run again from another working directory, with the cache's directory given absolutely."""
    return hits(bench.run("again", bench.filled(), cwd=bench.folder()))


def relative_directory(bench: Bench) -> Outcome:
    """Run again from another working directory, with the cache's directory given relatively.

    JAX resolves the path where the process stands, so each working directory gets a cache of its
    own, and no word is said. asv, which starts each benchmark in a folder of its own, never hits.
    """
    first, second = bench.folder(), bench.folder()
    bench.fill(first / "cache", named="cache", cwd=first)
    run = bench.run("again", second / "cache", named="cache", cwd=second)
    found = hits(run)
    if run.fine and not run.hit and run.files_after:
        return Outcome(False, "compiles, into a second cache in the new working directory")
    return found


def edited_comment(bench: Bench) -> Outcome:
    """Add two lines to the comment above the function: every line number below it changes.

    Line numbers are stripped before the key is made (unless `include-metadata`, below).
    """
    return hits(_edit(bench, COMMENT, COMMENT + "# It says more.\n# And more.\n")[1])


def wrapped(bench: Bench) -> Outcome:
    """Wrap the function in a decorator that uses functools.wraps: name and program stay the same.

    Without functools.wraps the name changes, and with it the key (see `renamed`).
    """
    return hits(bench.run("wrapped", bench.filled(), "wrapped"))


def renamed(bench: Bench) -> Outcome:
    """Give the function another name and change nothing else.

    The name of the function is the name of the module that XLA compiles, and the module is hashed
    with its name: a renamed function is a new program.
    """
    return hits(_edit(bench, "subject", "renamed")[1])


def include_metadata(bench: Bench) -> Outcome:
    """Add a line above the function under jax_compilation_cache_include_metadata_in_key.

    The flag puts source lines into the key, for those who need profiles to point at the right
    line: then a moved line has to be compiled again.
    """
    env = {"JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY": "true"}
    return _only(*_edit(bench, COMMENT, COMMENT * 2, env=env))


def other_xla_flags(bench: Bench) -> Outcome:
    """Run again under XLA_FLAGS that change the arithmetic: a hit would give the wrong program."""
    env = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
    cache = bench.filled()
    return _only(bench.run("same flags", cache), bench.run("other flags", cache, env=env))


def moved_directory(bench: Bench) -> Outcome:
    """Rename the directory, as a CI job does that restores a cache to another path.

    Up to jax 0.10.2 the path of XLA's autotuning cache, a folder inside the directory, is among the
    compile options that are hashed, on the CPU too: every entry is lost. Since 0.11.0 the path is
    left out. On 0.10.2 JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES=none helps.
    """
    place = bench.folder() / "moved"
    bench.filled().rename(place)
    return hits(bench.run("moved", place))


def copied_directory(bench: Bench) -> Outcome:
    """Copy the directory and use the copy, as a container image does that brings its cache along.

    jax 0.10.2 compiles again, for the reason given under `moved-directory`.
    """
    place = bench.folder() / "copy"
    shutil.copytree(bench.filled(), place)
    return hits(bench.run("copied", place))


def custom_partitioning(bench: Bench) -> Outcome:
    """Run a function with `custom_partitioning`, over two devices, in two processes.

    The address of the partitioning callback stands in the program that is hashed, and differs from
    process to process: it never hits, and each run leaves one more entry behind (jax#21159).
    """
    cache, env = bench.folder(), {"JAX_NUM_CPU_DEVICES": "2"}
    bench.fill(cache, "partitioned", env=env)
    return hits(bench.run("again", cache, "partitioned", env=env))


def custom_partitioning_flag(bench: Bench) -> Outcome:
    """Do the same under jax_remove_custom_partitioning_ptr_from_cache_key, the remedy."""
    cache = bench.folder()
    env = {
        "JAX_NUM_CPU_DEVICES": "2",
        "JAX_REMOVE_CUSTOM_PARTITIONING_PTR_FROM_CACHE_KEY": "true",
    }
    bench.fill(cache, "partitioned", env=env)
    return hits(bench.run("again", cache, "partitioned", env=env))


def host_callback(bench: Bench) -> Outcome:
    """Run a function with `pure_callback` in two processes.

    Up to jax 0.10.2 a program with host callbacks is never stored, and no word is said: neither
    `jax.debug.print` nor `io_callback` may be in what is to be cached. Since 0.11.0 it is stored,
    and the callbacks are put back when it is loaded.
    """
    cache = bench.folder()
    bench.fill(cache, "callback")
    return hits(bench.run("again", cache, "callback"))


HIT = "hits"

ROWS = (
    Row("same-program", "same program, another process", HIT, same_program),
    Row("hash-seed", "restarted with another PYTHONHASHSEED", HIT, other_hash_seed),
    Row("working-directory", "other working directory, absolute path", HIT, absolute_directory),
    Row("relative-directory", "other working directory, relative path", HIT, relative_directory),
    Row("moved-directory", "directory moved", HIT, moved_directory),
    Row("copied-directory", "directory copied", HIT, copied_directory),
    Row("edited-comment", "comment above the function edited", HIT, edited_comment),
    Row("wraps", "function wrapped by functools.wraps", HIT, wrapped),
    Row("renamed", "function renamed", HIT, renamed),
    Row("include-metadata", "line moved, metadata in the key", "compiles", include_metadata),
    Row("xla-flags", "two processes, different XLA_FLAGS", "compiles", other_xla_flags),
    Row("custom-partitioning", "custom_partitioning", HIT, custom_partitioning),
    Row(
        "custom-partitioning-flag",
        "custom_partitioning, pointer left out of the key",
        HIT,
        custom_partitioning_flag,
    ),
    Row("host-callback", "host callback (pure_callback)", HIT, host_callback),
)
