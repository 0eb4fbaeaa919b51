"""Programs that do what programs should not, with a profile open inside them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

import harness
from harness.errors import ProfileError
from harness.watch import events
from tests.performance.profile_overhead import installed


def run(tmp_path, code, *arguments, expect=0):
    """Run a program from standard input, which has no `__file__`; FOLDER is its profile's."""
    top = (
        "import os, sys, jax, numpy as np, harness\n"
        "jax.config.update('jax_enable_compilation_cache', False)\n"
        "FOLDER = sys.argv[1]\n"
        "def made(size): return jax.jit(lambda x: x * 2)(np.ones(size))\n"
    )
    done = subprocess.run(
        [sys.executable, "-", str(tmp_path / "profile"), *arguments],
        input=top + code,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.returncode == expect, done.stderr[-3000:]
    return done


def builds(tmp_path):
    return [b for b in harness.load_profile(tmp_path / "profile").builds if b.times("compile")]


def test_a_killed_program_still_has_its_profile(tmp_path):
    run(
        tmp_path,
        "with harness.profile(FOLDER):\n    made(3); made(4)\n    os.kill(os.getpid(), 9)\n",
        expect=-9,
    )
    found = builds(tmp_path)
    assert [built.arguments.leaves[0].aval for built in found] == ["float32[3]", "float32[4]"]
    assert found[0].process.ended is None
    assert found[0].frames[-1].file == "<stdin>"


def test_a_crash_is_the_program_s_own_and_ends_the_profile_well(tmp_path):
    done = run(
        tmp_path,
        "with harness.profile(FOLDER):\n"
        "    made(3)\n"
        "    jax.jit(lambda x: x + [1, 2])(np.ones(3))\n",
        expect=1,
    )
    assert "\nTypeError: unsupported operand" in done.stderr
    # What stands between JAX and its caller is hidden as JAX's own frames are.
    assert "profiling/recording" not in done.stderr
    assert len(builds(tmp_path)) == 1
    found = harness.load_profile(tmp_path / "profile")
    assert found.processes[0].ended.why == "context"
    assert "TypeError" in [built.line.error for built in found.builds]


def test_a_deleted_working_directory_a_full_disk_and_a_fork(tmp_path):
    """One program, because each costs an `import jax`."""
    done = run(
        tmp_path,
        "import resource\n"
        "os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
        "with harness.profile(FOLDER):\n"
        "    made(3)\n"
        "    if not os.fork():\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))\n"
        "    made(4)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))\n"
        "    made(5)\n"
        "print('done')\n",
    )
    assert done.stdout == "done\n"
    found = harness.load_profile(tmp_path / "profile")
    assert [built.arguments.leaves[0].aval[-3:] for built in builds(tmp_path)] == [
        "[3]",
        "[4]",
        "[5]",
    ]
    assert found.broken_lines == 0
    assert found.builds[0].process.ended.lost == 0


def test_threads_that_compile_at_once_are_told_apart(tmp_path):
    barrier = threading.Barrier(6)
    idents = {}

    def work(number):
        barrier.wait()
        idents[threading.get_ident()] = number
        for size in (3, 4, 5):
            jax.jit(lambda x: x + number)(np.ones(size + 10 * number))

    with harness.profile(tmp_path / "profile") as found, ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    done = [built for built in found.builds if built.times("compile")]
    assert len(done) == 18
    for built in done:
        (leaf,) = built.arguments.leaves
        size = int(leaf.aval.partition("[")[2].rstrip("]"))
        assert size // 10 == idents[built.line.thread] or size < 10
        assert [span.times for span in built.line.spans] == [1, 1, 1]
        assert built.line.parent == 0


def test_300_real_compiles_are_300_builds(tmp_path):
    function = jax.jit(lambda x: x * 3)
    with harness.profile(tmp_path / "profile") as found:
        for size in range(1, 301):
            function.lower(jax.ShapeDtypeStruct((size,), "float32"))
        for size in range(1, 6):
            for _ in range(3):
                function(np.ones(size, "float32"))
    lowered = [built for built in found.builds if built.times("lower")]
    assert len([built for built in lowered if built.line.kind != "call"]) == 300
    assert sum(built.times("compile") for built in found.builds) == 5
    assert found.broken_lines == 0
    assert found.processes[0].ended.failures == ()


class OwnError(Exception):
    """The program's own."""


def raising(*_, **__):
    raise OwnError("a listener of the program's")


@pytest.fixture
def raising_listener():
    """A listener of the program's that raises, and is there with and without a profile."""
    from jax._src import monitoring

    lists = [value for value in vars(monitoring).values() if isinstance(value, list)]
    before = [list(value) for value in lists]
    yield lambda: monitoring.register_event_duration_secs_listener(raising)
    for value, was in zip(lists, before, strict=True):
        value[:] = was


def outcome(size):
    try:
        return jax.jit(lambda x: x - 1)(np.ones(size)).shape
    except OwnError as error:
        return str(error)


def test_a_listener_that_raises_is_seen_as_it_would_be_without_a_profile(
    tmp_path, raising_listener
):
    raising_listener()
    without = [outcome(size) for size in (3, 4)]
    before = installed()
    with harness.profile(tmp_path / "profile") as found:
        within = [outcome(size) for size in (3, 4)]
    assert within == without
    assert installed() == before
    assert found.processes[0].ended is not None
    with harness.profile(tmp_path / "again") as found:
        raising_listener()  # one that comes later
        assert outcome(5) == without[0]
    assert found.processes[0].ended is not None


def test_a_program_that_takes_all_listeners_away_is_recorded_to_the_end(tmp_path, raising_listener):
    before = installed()
    with harness.profile(tmp_path / "profile") as found:
        jax.monitoring.clear_event_listeners()
        assert outcome(6) == (6,)
    assert len([built for built in found.builds if built.times("compile")]) == 1
    assert {name: value for name, value in installed().items() if ":" in name} == {
        name: value for name, value in before.items() if ":" in name
    }


def test_names_that_are_no_unicode_are_recorded(tmp_path):
    def odd(tree, how):
        return tree["caf\udce9"] + 1

    with harness.profile(tmp_path / "profile") as found:
        jax.jit(odd, static_argnames="how").trace({"caf\udce9": np.ones(3)}, how="half\ud83d")
    (built,) = found.builds
    assert "udce9" in built.arguments.leaves[0].path
    assert "ud83d" in built.arguments.statics[0].value
    assert found.processes[0].ended.lost == 0


@pytest.mark.parametrize("name", ["file", "file/in", "/proc/nowhere"])
def test_a_folder_that_cannot_be_written_is_said_and_nothing_installed(tmp_path, name):
    (tmp_path / "file").write_text("")
    before = installed()
    with pytest.raises(ProfileError, match="cannot be written"), harness.profile(tmp_path / name):
        pytest.fail("the profile was opened")
    assert installed() == before


def test_a_folder_that_is_deleted_meanwhile_does_not_hide_the_program_s_error(tmp_path):
    import shutil

    def program():
        with harness.profile(tmp_path / "profile"):
            shutil.rmtree(tmp_path / "profile")
            raise OwnError

    with pytest.raises(OwnError):
        program()


def test_arguments_of_thousands_of_arrays_are_one_build(tmp_path):
    many = {str(number): np.ones(2) for number in range(3_000)}
    with harness.profile(tmp_path / "profile") as found:
        jax.jit(lambda tree: tree["1"]).trace(many)
    (built,) = found.builds
    assert len(built.arguments.leaves) == 3_000
    assert built.arguments.leaves[1].path == "tree['1']"
    assert found.processes[0].of(events.Ended)
