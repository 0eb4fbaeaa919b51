"""A line on standard error for each build that takes long, while the program runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.jaxhooks.programs import COMMAND, environment

SLOW = """
import contextlib, os, sys, time
import jax, jax.numpy as jnp, numpy as np

def waits(x):
    for _ in range(6000):
        if os.path.exists(sys.argv[1]):  # made as soon as the line is there
            return x
        time.sleep(0.01)

def slow(x):
    for n in range(12):
        x = jnp.tanh(x) * jnp.sort(x, axis=n % 2) + n
    return x

jax.jit(waits)(np.ones(3))
print("waited")
jax.jit(slow)(np.ones((8, 8)))
with contextlib.suppress(BrokenPipeError):
    os.write(2, b"the program's own line\\n")
sys.exit(5)
"""


def begun(folder, *options):
    (folder / "slow.py").write_text(SLOW)
    command = [*COMMAND, *options, "-o", "p", "--", sys.executable, "slow.py", "seen"]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment(), stdout=pipe, stderr=pipe)


def test_a_slow_build_is_announced_while_it_goes_on(tmp_path):
    with begun(tmp_path, "--announce", "0.05", "--max-compiles", "1") as process:
        lines = []
        for line in map(bytes.decode, process.stderr):
            lines.append(line.rstrip())
            if line.startswith("harness: tracing `waits` (slow.py:16), "):
                (tmp_path / "seen").touch()
        assert process.stdout.read() == b"waited\n"
    assert process.returncode == 5
    announced = [line for line in lines if line.endswith(" so far")]
    assert len([line for line in announced if "tracing `waits`" in line]) == 1
    (compiling,) = (line for line in announced if "compiling `slow` (slow.py:18), " in line)
    assert lines.index(compiling) < lines.index("the program's own line")
    assert lines[-1] == (
        "harness: exit code 5: the program ended with 5; 2 compiled or loaded, "
        "over --max-compiles 1."
    )


@pytest.mark.parametrize("options", [("--announce", "0.05"), ("--announce", "0")])
def test_a_standard_error_that_nobody_reads_and_no_announcement_change_nothing(tmp_path, options):
    (tmp_path / "seen").touch()
    with begun(tmp_path, *options) as process:
        if options[1] != "0":
            process.stderr.close()
        assert process.stdout.read() == b"waited\n"
        text = b"" if process.stderr.closed else process.stderr.read()
    assert process.returncode == 5
    assert b" so far" not in text
    assert os.listdir(tmp_path / "p")
