"""Changes of a program's text: what is jitted once, what is refused, and why."""

import ast
import re
from pathlib import Path

import pytest

from harness.jaxhooks.events import Frame, Function
from harness.output import profile_patch
from harness.patches import arguments, copies, hoist
from harness.patches.source import ProgramFile, Refused
from tools.profile_patches.__main__ import programs

HEAD = "import functools\n\nimport jax\nimport jax.numpy as jnp\n\n\n"


def read(tmp_path, code):
    file = tmp_path / "program.py"
    file.write_text(HEAD + code, encoding="utf-8")
    return ProgramFile(file)


def function(source, name):
    """Return what a profile has of a function: its name and line."""
    for node in ast.walk(source.tree):
        if name == "<lambda>" and isinstance(node, ast.Lambda):
            return Function(1, name, name, str(source.path), node.lineno, "program")
        if isinstance(node, ast.FunctionDef) and node.name == name:
            line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            return Function(1, name, name, str(source.path), line, "program")
    raise AssertionError(name)


def once(tmp_path, name, code):
    source = read(tmp_path, code)
    site = Frame(str(source.path), 10**6, "", "program")
    edits, _ = hoist.jitted_once(source, function(source, name), site)
    return source.edited(edits).removeprefix(HEAD)


DECORATED = """\
def fit(data):
    scale = data.max()

    def cost(w):  # comments stay
        return jnp.sum((w - data) ** 2) / scale

    @jax.jit
    def update(w):
        return w - 0.1 * jax.grad(cost)(w)

    return update(data)
"""
DECORATED_ONCE = """\
@jax.jit
def _update(w, data, scale):
    def cost(w):  # comments stay
        return jnp.sum((w - data) ** 2) / scale

    return w - 0.1 * jax.grad(cost)(w)


def fit(data):
    scale = data.max()

    return _update(data, data=data, scale=scale)
"""


def test_what_a_function_captures_becomes_arguments_and_functions_move_along(tmp_path):
    assert once(tmp_path, "update", DECORATED) == DECORATED_ONCE


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        (
            "loss",
            "def loss(w):\n    return w.sum()\n\n\nfor _ in range(3):\n"
            "    g = jax.jit(jax.grad(loss))\n    print(g(jnp.ones(3)))\n",
            "_g = jax.jit(jax.grad(loss))\n\n\nfor _ in range(3):\n    g = _g\n",
        ),
        (
            "<lambda>",
            "def run(x, power):\n    return jax.jit(lambda x: x**power)(x)\n",
            "@jax.jit\ndef _run(x, power):\n    return x**power\n\n\ndef run(x, power):\n"
            "    return _run(x, power=power)\n",
        ),
        (
            "add",
            "def add(x, y):\n    return x + y\n\n\ndef run(x, y):\n"
            "    return jax.jit(functools.partial(add, y=y))(x)\n",
            "_add = jax.jit(add)\n\n\ndef run(x, y):\n    return _add(x, y=y)\n",
        ),
        (
            "add",
            "def add(x, y):\n    return x + y\n\n\ndef run(xs, y):\n"
            "    f = jax.jit(jax.vmap(functools.partial(add, y)))\n    return f(xs)\n",
            "@jax.jit\ndef _f(*args, y):\n    return jax.vmap(functools.partial(add, y))(*args)\n",
        ),
        (
            "scaled",
            "class Model:\n    def scaled(self, x):\n        return x * self.gain\n\n"
            "    def run(self, x):\n        return jax.jit(self.scaled)(x)\n",
            "@jax.jit\ndef _scaled(x, gain):\n    return x * gain\n",
        ),
    ],
)
def test_expressions_that_are_jitted_once(tmp_path, name, code, expected):
    assert expected in once(tmp_path, name, code)


TRAPS = [
    trap
    for trap in programs("traps.txt")
    if trap.expected in profile_patch.REASONS and trap.kind in ("recreated", "once")
    if trap.expected not in ("raises", "differs", "not-observable")  # by running it alone
]


@pytest.mark.parametrize("trap", TRAPS, ids=[trap.name for trap in TRAPS])
def test_what_could_change_a_result_is_refused(tmp_path, trap):
    decorated = re.search(r"jax\.jit.*\n +def (\w+)", trap.code)
    with pytest.raises(Refused) as refused:
        once(tmp_path, decorated[1] if decorated else "<lambda>", trap.code)
    assert refused.value.reason == trap.expected


def test_a_function_that_is_jitted_once_already_has_no_place_to_change(tmp_path):
    with pytest.raises(Refused, match="no-place"):
        once(tmp_path, "step", "@jax.jit\ndef step(x):\n    return x\n")


def test_static_arguments_are_left_out_by_name_and_by_number(tmp_path):
    code = (
        '@functools.partial(jax.jit, static_argnames=("n", "rate"))\n'
        "def a(x, n, rate):\n    return x\n\n\ndef b(x, n, rate):\n    return x\n\n\n"
        "b = jax.jit(b, static_argnums=(2,))\n"
    )
    source = read(tmp_path, code)

    def without(name, *names):
        known = function(source, name)
        return source.edited(arguments.made_dynamic(source, known, names))

    assert '@functools.partial(jax.jit, static_argnames="n")\n' in without("a", "rate")
    assert "@jax.jit\ndef a(" in without("a", "n", "rate")
    assert "b = jax.jit(b)\n" in without("b", "rate")


@pytest.mark.parametrize(
    ("made", "argument", "expected"),
    [
        ("state = 0.0", "state", "state = np.float32(0.0)"),
        ("state = (jnp.ones(3), 1.0)", "state[1]", "(jnp.ones(3), np.float32(1.0))"),
        ("state = {'t': 0.0}", "state['t']", "{'t': np.float32(0.0)}"),
        ("state = State(jnp.ones(3), time=0.0)", "state.time", "time=np.float32(0.0)"),
        ("state = State(1.0, 2.0)", "state.time", "State(1.0, np.float32(2.0))"),
        ("state = jnp.full(3, 1.0)", "state", "jnp.full(3, 1.0, dtype=np.float32)"),
    ],
)
def test_a_value_gets_its_dtype_where_it_is_made(tmp_path, made, argument, expected):
    code = f"class State:\n    x: int\n    time: float\n\n\n{made}\nstate = step(state)\n"
    source = read(tmp_path, code)
    line = len(source.lines)
    known = Function(1, "step", "step", str(source.path), 1, "program")
    site = Frame(str(source.path), line, "", "program")
    text = source.edited(arguments.typed(source, known, ["state"], argument, "float32", site))
    assert expected in text
    assert "import numpy as np\n" in text


def test_python_loops_over_numpy_arrays(tmp_path):
    source = read(tmp_path, "for n, (a, b) in enumerate(zip(xs, f(ys))):\n    low, high = g(a)\n")
    first = len(HEAD.splitlines()) + 1
    text = source.edited(arguments.iterated_by_numpy(source, {first, first + 1}))
    assert "enumerate(zip(np.asarray(xs), np.asarray(f(ys))))" in text
    assert "low, high = np.asarray(g(a))" in text


def test_texts_are_equal_but_for_the_last_digits():
    assert copies.is_same_text("loss 0.1234567, 3 steps", "loss 0.1234568, 3 steps")
    assert not copies.is_same_text("loss 0.1234", "loss 0.1235")
    assert not copies.is_same_text("3 steps", "4 steps")
    assert not copies.is_same_text("a 1.0", "b 1.0")


def test_every_reason_has_its_words_and_every_words_a_reason():
    room = Path(hoist.__file__).parent
    text = "".join(file.read_text() for file in room.glob("*.py"))
    used = set(re.findall(r'(?:Refused|NotPatched)\([^()]*?"([a-z][a-z-]+)"', text))
    used |= set(re.findall(r'"((?:no|several)-place[s]?)"', text))
    assert used == set(profile_patch.REASONS)
