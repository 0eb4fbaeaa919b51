"""The answer on terminals of several heights: the first remedy is whole, whatever is left out."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import harness
from harness.output.profile_findings import finding_texts
from harness.output.report.profile.face import load_profile

pytestmark = pytest.mark.usefixtures("fresh_processes")

FUNCTIONS = 20
X = np.ones(4, np.float32)


def weak_leaf():
    """A leaf that starts as a Python float."""

    @jax.jit
    def advance_the_whole_simulation(parameters, state):
        position, time = state["the_position_of_every_particle"], state["the_time_that_has_passed"]
        for _ in range(12):
            position = position - 0.01 * jnp.linalg.solve(parameters, position)
        return {
            "the_position_of_every_particle": position,
            "the_time_that_has_passed": time + jnp.float32(0.1),
        }

    state = {"the_position_of_every_particle": jnp.ones(8), "the_time_that_has_passed": 0.0}
    for _ in range(3):
        state = advance_the_whole_simulation(jnp.eye(8), state)


def fixed_field():
    """A static argument that takes ever other values."""

    def integrate_over_many_small_steps(x, number_of_steps):
        for _ in range(12):
            x = jnp.sin(jnp.linalg.solve(jnp.eye(8) * number_of_steps, x))
        return x

    jitted = jax.jit(integrate_over_many_small_steps, static_argnames="number_of_steps")
    for number in (1, 2, 3):
        jitted(jnp.ones(8), number_of_steps=number)


def made_again():
    """A function that is jitted anew for other arrays."""
    for number in range(3):
        measured = jnp.asarray(np.random.default_rng(number).normal(size=16))

        @jax.jit
        def residual_of_the_measurements(weights, measured=measured):
            for _ in range(12):
                weights = jnp.linalg.solve(jnp.eye(16), weights - measured)
            return weights

        residual_of_the_measurements(jnp.ones(16))


PROGRAMS = {
    weak_leaf: (
        "`state['the_time_that_has_passed']` was a Python float",
        "Pass `state['the_time_that_has_passed']` always as an array, e.g. jnp.float32(...), or "
        "never.",
    ),
    fixed_field: (
        "`number_of_steps` is static and took 3 values",
        "If `number_of_steps` sizes no array, and all that is computed of it fits an int32, make "
        "it a dynamic argument (with jax.lax.fori_loop "
        "or while_loop where it counts steps); else let it take few values.",
    ),
    made_again: (
        "each time another function object of the same source line",
        "Define and jit it once, outside the loop or function that makes it, and pass what changes "
        "in it as an argument.",
    ),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Make the profile of a program, with many smaller findings behind that of interest."""
    made = {}

    def folder(program):
        if program not in made:
            made[program] = tmp_path_factory.mktemp("profile")
            jax.clear_caches()
            with harness.profile(made[program], sample_ms=0):
                program()
                for number in range(FUNCTIONS):
                    scaled = jax.jit(lambda x, n: x * n, static_argnames="n")
                    scaled.__wrapped__.__name__ = f"scaled_{number}"
                    for n in (2, 3):
                        scaled.trace(X, n=n)
        return made[program]

    return folder


def on_a_terminal(folder, rows, *words):
    """Return the lines that the command prints on a terminal of 80 columns; 0 rows for a pipe."""
    command = [sys.executable, "-m", "harness", "profile", "show", str(folder), *words]
    if not rows:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    own, others = pty.openpty()
    fcntl.ioctl(others, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment["TERM"] = "xterm"
    with subprocess.Popen(command, stdout=others, stderr=others, env=environment) as started:
        os.close(others)
        text = b""
        while True:
            try:
                piece = os.read(own, 65_536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            text += piece
    os.close(own)
    assert started.returncode == 0, text
    return re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("program", "rows"),
    [
        (weak_leaf, 24),
        (weak_leaf, 60),
        (weak_leaf, 0),
        *(
            pytest.param(program, rows, marks=pytest.mark.nightly)
            for program in (fixed_field, made_again)
            for rows in (24, 60, 0)
        ),
    ],
)
def test_the_first_remedy_is_whole_and_a_higher_terminal_shows_more(folders, program, rows):
    folder = folders(program)
    text = on_a_terminal(folder, rows)
    lines, words = text.splitlines(), " ".join(text.split())
    first = next(one for one in finding_texts(load_profile(folder)) if one.remedy)
    assert f"{first.text}, {first.place}" in words, words
    assert first.remedy in words
    left = re.search(r"in (\d+) other findings?: harness profile show", words)
    assert (left is not None) == bool(rows)
    if rows:
        assert len(lines) < rows  # the shell's prompt needs one
        assert not [one for one in lines if len(one) > 80 and "harness profile" not in one]
        lower = on_a_terminal(folder, rows - 6)
        assert len(lower.splitlines()) < len(lines)
    # A remedy is whole or it is not there.
    assert not [line for line in lines if line.startswith(" " * 11) and line.endswith("…")]


@pytest.mark.parametrize(
    "program",
    [
        weak_leaf,
        *(pytest.param(one, marks=pytest.mark.nightly) for one in (fixed_field, made_again)),
    ],
)
def test_what_was_left_out_is_there_with_all(folders, program):
    text = on_a_terminal(folders(program), 24, "--all")
    assert len(text.splitlines()) > 24
    words = " ".join(text.split())
    assert [part for part in PROGRAMS[program] if part not in words] == []
    assert "other finding" not in text
    assert text.count("scaled_") >= FUNCTIONS
