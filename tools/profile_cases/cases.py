"""Programs of kinds that a profile once answered wrong, each with the right answer.

It was written before the run. Some of them are the programs that showed the kind.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

MARK = "# HERE"


class Case(NamedTuple):
    """A program, and what its profile is to say."""

    row: str
    """The kind of what was wrong."""
    name: str
    run: Callable[[], None]
    function: str
    """Empty: any."""
    causes: tuple[tuple[str, str], ...]
    """Each cause and argument that is reported of the function, and no other; `eager`: of JAX's own
    functions outside jit, by a piece of the finding."""
    says: tuple[str, ...]
    """Pieces of the remedy of the first of them."""
    never: tuple[str, ...]
    """Pieces that no remedy of the program has."""
    place: str
    """A line that the answer names, as `cases.py:8`; empty: any."""


ALL: list[Case] = []


def case(
    row: str,
    function: str,
    *causes: tuple[str, str],
    says: tuple[str, ...] = (),
    never: tuple[str, ...] = (),
) -> Any:
    """Declare a program."""

    def declare(run: Callable[[], None]) -> Callable[[], None]:
        lines, first = inspect.getsourcelines(run)
        marked = [n for n, line in enumerate(lines, first) if line.rstrip().endswith(MARK)]
        place = f"cases.py:{marked[0]}" if marked else ""
        ALL.append(Case(row, run.__name__, run, function, causes, says, never, place))
        return run

    return declare


X = np.ones(16, np.float32)
ROWS = [np.random.default_rng(n).normal(size=64).astype(np.float32) for n in range(4)]
AGAIN = (("new function object", "loss"),)
AS_ARGUMENTS = ("as an argument",)


# A function that is jitted anew over other arrays.


@case("closures over arrays", "loss", *AGAIN, says=AS_ARGUMENTS)
def factory_over_data():
    def fit(data):
        @jax.jit
        def loss(w):
            return jnp.sum((w - data) ** 2)

        return loss(np.zeros(64, np.float32))

    for row in ROWS:
        fit(jnp.asarray(row))


@case("closures over arrays", "loss", *AGAIN, says=AS_ARGUMENTS)
def solver_with_a_cache_of_its_own():
    class Solver:
        def __init__(self, links):
            self.links, self.made = jnp.asarray(links), {}

        def solve(self, q):
            links = self.links
            if not self.made:

                @jax.jit
                def loss(q):
                    def body(q, _):
                        return q - 0.01 * jax.grad(lambda q: jnp.sum((links * q) ** 2))(q), None

                    return jax.lax.scan(body, q, length=30)[0]

                self.made["loss"] = loss
            return self.made["loss"](q)

    for row in ROWS:
        Solver(row).solve(np.ones(64, np.float32))


@case(
    "closures over arrays",
    "loss",
    *AGAIN,
    says=("as arguments",),
    never=("Make the partial and jit it once",),
)
def partial_over_data():
    def loss(w, data):
        return jnp.sum((w - data) ** 2)

    for row in ROWS:
        jax.jit(functools.partial(loss, data=jnp.asarray(row)))(np.zeros(64, np.float32))


# One leaf that starts as a Python number: named whole, with its remedy, on a narrow terminal.


@functools.partial(jax.tree_util.register_dataclass, data_fields=["pos", "time"], meta_fields=[])
@dataclasses.dataclass
class Sim:
    """A state."""

    pos: Any
    time: Any


@case("weak leaf", "step", ("weak type", "sim.time"), says=("`sim.time`", "jnp.float32"))
def time_of_a_simulation():
    @jax.jit
    def step(sim):
        return Sim(sim.pos * 2, sim.time + np.float32(0.1))

    sim = Sim(X, 0.0)
    for _ in range(3):
        sim = step(sim)


@case("weak leaf", "step", ("weak type", "state['clock']['t']"), says=("state['clock']['t']",))
def leaf_of_nested_dictionaries():
    @jax.jit
    def step(state):
        t = state["clock"]["t"] + np.float32(1)
        return {"clock": {"t": t, "dt": state["clock"]["dt"]}, "x": state["x"] + t}

    state = {"clock": {"t": 0.0, "dt": X}, "x": X}
    for _ in range(3):
        state = step(state)


Carry = collections.namedtuple("Carry", "params count")


@case("weak leaf", "step", ("weak type", "carry[1].count"), says=("carry[1].count", "jnp.int32"))
def count_of_a_namedtuple_in_a_tuple():
    @jax.jit
    def step(carry):
        x, own = carry
        return x * 2, Carry(own.params - 1, own.count + np.int32(1))

    carry = (X, Carry(X, 0))
    for _ in range(3):
        carry = step(carry)


# Loops and branches outside jit.


@case("loops outside jit", "", ("eager", "`while`"), says=("Jit",))
def line_search_of_a_library():
    import optax

    def value(p):
        return jnp.sum((p - 2.0) ** 2)

    search = optax.scale_by_backtracking_linesearch(max_backtracking_steps=5)
    opt, p = optax.chain(optax.sgd(1.0), search), jnp.ones(5)
    state, value_and_grad = opt.init(p), jax.jit(jax.value_and_grad(value))
    for _ in range(5):
        v, g = value_and_grad(p)
        updates, state = opt.update(g, state, p, value=v, grad=g, value_fn=value)
        p = optax.apply_updates(p, updates)


@case("loops outside jit", "", ("eager", "`while`"), says=("Jit",))
def while_loop_of_lambdas():
    def power(x, n):
        limit = jnp.float32(n)
        return jax.lax.while_loop(lambda c: c[1] < limit, lambda c: (c[0] * x, c[1] + 1), (x, 0.0))

    for n in range(1, 5):
        power(X, n)


@case("loops outside jit", "", ("eager", "`scan`"), says=("Jit",))
def map_over_rows():
    def each(rows, by):
        return jax.lax.map(lambda row: jnp.tanh(row) * by, rows)

    for row in ROWS:
        each(np.ones((3, 64), np.float32), jnp.asarray(row))


# Eager loops with ever other shapes, on one line.

SIZED = ("Built again for other shapes", "sizes few")


@case("sizes on one line", "", ("eager", "outside jit"), says=SIZED, never=("into one jitted",))
def sums_of_beginnings():
    x, total = jnp.asarray(np.ones((200, 3), np.float32)), 0.0
    for i in range(1, 20):
        total += float(x[:i].sum())


@case("sizes on one line", "", ("eager", "outside jit"), says=SIZED, never=("into one jitted",))
def sines_of_lengths():
    for k in range(2, 20):
        jnp.sin(np.ones(k, np.float32))


@case("sizes on one line", "", ("eager", "outside jit"), says=SIZED, never=("into one jitted",))
def products_of_beginnings():
    for n in range(2, 20):
        jnp.dot(np.ones(n, np.float32), np.ones(n, np.float32))


@case("results sized by values", "", ("eager", "outside jit"), says=("size=",))
def distinct_values():
    for n in range(3, 12):
        jnp.unique(np.arange(20) % n)


@case("results sized by values", "", ("eager", "outside jit"), says=("jnp.where",))
def elements_of_a_mask():
    x = jnp.asarray(np.arange(20, dtype=np.float32))
    for n in range(3, 12):
        x[x > n]


@case("results sized by values", "", ("eager", "outside jit"), says=("size=",))
def places_of_nonzero():
    for n in range(3, 12):
        jnp.nonzero(np.arange(20) < n)


# A jitted function that is made in each object: the line of its jax.jit, and not of its def.


def kinematics(q):
    return jnp.cumsum(jnp.sin(q))


@case("place of a jit", "solve", ("static value", "forward"), says=("once",))
def jitted_in_an_init():
    class Trajectory:
        def __init__(self):
            self.forward = jax.jit(kinematics)  # HERE

    @functools.partial(jax.jit, static_argnames="forward")
    def solve(x, forward):
        return forward(x) * 2

    for _ in range(4):
        solve(X, forward=Trajectory().forward)


@case("place of a jit", "solve", ("static value", "forward"), says=("once",))
def jitted_by_a_factory():
    def make():
        jitted = jax.jit(kinematics, inline=True)  # HERE
        return jitted

    @functools.partial(jax.jit, static_argnums=1)
    def solve(x, forward):
        return forward(x) * 2

    for _ in range(4):
        solve(X, make())


@case("place of a jit", "solve", ("static value", "model.forward"), says=("once",))
def jitted_in_a_module():
    import equinox as eqx

    class Trajectory(eqx.Module):
        scale: jax.Array
        forward: Callable

        def __init__(self):
            self.scale = jnp.ones(16)
            self.forward = jax.jit(kinematics)  # HERE

    @eqx.filter_jit
    def solve(model, x):
        return model.forward(x) * model.scale

    for _ in range(4):
        solve(Trajectory(), X)


# shard_map outside jit.


def mapped(function, out="i"):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,))
    return jax.shard_map(function, mesh=mesh, in_specs=P("i"), out_specs=P(*([out] * bool(out))))


def several(function):
    for _ in range(3):
        function(X)


SHARD_MAP = ("eager", "shard_map outside jit")
JIT_IT = ("Jit the shard_map",)


@case("shard_map outside jit", "", SHARD_MAP, says=JIT_IT)
def shard_map_of_a_function():
    several(mapped(lambda x: jnp.sin(x) * 2))


@case("shard_map outside jit", "", SHARD_MAP, says=JIT_IT)
def shard_map_of_a_jitted_function():
    several(mapped(jax.jit(lambda x: jnp.sin(x) * 2)))


@case("shard_map outside jit", "", SHARD_MAP, says=JIT_IT)
def shard_map_with_a_sum():
    several(mapped(lambda x: jax.lax.psum(jnp.cos(x), "i"), ""))


# An argument that is not used.


@case("unused argument", "f", ("unused argument", "unused"), says=("`unused`",), never=("Pad",))
def unused_array():
    @jax.jit
    def f(x, unused):
        return jnp.sin(x) * 2

    for n in (3, 5, 7):
        f(X, np.ones(n))


@case("unused argument", "f", ("unused argument", "batch['id']"), never=("Pad",))
def unused_leaf():
    @jax.jit
    def f(batch):
        return batch["x"] * 2

    for n in (3, 5, 7):
        f({"x": X, "id": np.arange(n)})


@case("unused argument", "f", ("unused argument", "mask"), never=("astype",))
def unused_of_other_dtypes():
    @jax.jit
    def f(x, mask):
        return x - 1

    for kind in (np.float32, np.int32, np.int8):
        f(X, np.ones(3, kind))


@case("used by its shape", "f", ("shape", "like"), never=("Leave",))
def used_by_its_size():
    @jax.jit
    def f(x, like):
        return x.sum() / like.shape[0]

    for n in (3, 5, 7):
        f(X, np.ones(n))


@case("used by its shape", "f", ("dtype", "like"), never=("Leave",))
def used_by_its_dtype():
    @jax.jit
    def f(x, like):
        return x.astype(like.dtype)

    for kind in (np.float32, np.int32, np.int8):
        f(X, np.ones(3, kind))


@case("used by its shape", "f", ("shape", "batch['like']"), never=("Leave",))
def used_by_the_size_of_a_leaf():
    @jax.jit
    def f(batch):
        return jnp.zeros_like(batch["like"]) + batch["x"][0]

    for n in (3, 5, 7):
        f({"x": X, "like": np.ones(n)})


# Classes, dictionaries, ways of giving a static argument.


@case("class made anew", "f", ("pytree", "t"), says=("once", "N"))
def namedtuple_made_anew():
    @jax.jit
    def f(t):
        return t.x * 2

    for _ in range(3):
        f(collections.namedtuple("N", "x")(X))


@case("class made anew", "f", ("pytree", "t"), says=("once", "N"))
def namedtuple_in_a_list():
    @jax.jit
    def f(t):
        return t[0].x * 2

    for _ in range(3):
        f([collections.namedtuple("N", "x")(X)])


@case("class made anew", "f", ("pytree", "t"), says=("once", "State"))
def dataclass_made_anew():
    def make():
        @functools.partial(jax.tree_util.register_dataclass, data_fields=["x"], meta_fields=[])
        @dataclasses.dataclass
        class State:
            x: Any

        return State(X)

    @jax.jit
    def f(t):
        return t.x * 2

    for _ in range(3):
        f(make())


@case("dictionaries", "f", ("pytree", "d"), says=("one kind of dictionary",))
def dictionaries_of_four_kinds():
    @jax.jit
    def f(d):
        return d["a"] * 2

    f({"a": X})
    f(collections.OrderedDict(a=X))
    f(collections.defaultdict(int, a=X))
    f(collections.defaultdict(float, a=X))


@case("dictionaries", "f", ("pytree", "d"), says=("one kind of dictionary",))
def defaultdicts_of_two_kinds():
    @jax.jit
    def f(d):
        return d["a"] * 2

    f(collections.defaultdict(list, a=X))
    f(collections.defaultdict(int, a=X))


@case("dictionaries", "f", ("pytree", "d"), says=("one kind of dictionary",))
def dictionary_inside_another():
    @jax.jit
    def f(d):
        return d["in"]["a"] * 2

    f({"in": {"a": X}})
    f({"in": collections.OrderedDict(a=X)})


KEYWORD = ("always by keyword",)


@case("static in three ways", "f", ("pytree", "n"), says=KEYWORD)
def default_keyword_and_position():
    @functools.partial(jax.jit, static_argnames="n")
    def f(x, n=2):
        return x * n

    f(X)
    f(X, n=2)
    f(X, 2)


@case("static in three ways", "f", ("pytree", "mode"), says=KEYWORD)
def a_word_left_out():
    @functools.partial(jax.jit, static_argnames="mode")
    def f(x, mode="train"):
        return x * (2 if mode == "train" else 1)

    f(X)
    f(X, mode="train")


@case("static in three ways", "f", ("pytree", "axis"), says=KEYWORD)
def position_and_keyword():
    @functools.partial(jax.jit, static_argnames="axis")
    def f(x, axis):
        return jnp.sum(x, axis=axis)

    f(X, 0)
    f(X, axis=0)


# The nearest earlier build.


@case("nearest build", "f", ("static value", "layers"), ("static value", "act"))
def two_static_arguments():
    @functools.partial(jax.jit, static_argnames=("layers", "act"))
    def f(x, layers, act):
        return x * layers + len(act)

    for layers in range(1, 9):
        f(X, layers=layers, act="tanh")
    for act in ("sin", "relu", "cos"):
        f(X, layers=1, act=act)


@case(
    "nearest build",
    "f",
    ("configuration", "jax_default_matmul_precision"),
    ("configuration", "jax_numpy_rank_promotion"),
    ("configuration", "jax_threefry_partitionable"),
)
def settings():
    @jax.jit
    def f(x):
        return jnp.tanh(x)

    f(X)
    for p in ("bfloat16", "tensorfloat32", "float32", "highest", "high", "default"):
        with jax.default_matmul_precision(p):
            f(X)
    with jax.numpy_rank_promotion("warn"):
        f(X)
    with jax.threefry_partitionable(False):
        f(X)


@case("nearest build", "f", ("shape", "x"), ("dtype", "y"))
def a_size_and_then_a_dtype():
    @jax.jit
    def f(x, y):
        return x.sum() + y

    for n in range(1, 12):
        f(np.ones(n, np.float32), X)
    f(np.ones(1, np.float32), X.astype(np.int32))


# Stages of a program ahead of time are one build.


@case("ahead of time", "f", ("shape", "x"))
def compiled_for_sizes():
    def f(x):
        return jnp.tanh(x @ x.T).sum()

    for n in (6, 9, 12):
        jax.jit(f).lower(np.ones((n, n), np.float32)).compile()


@case("ahead of time", "f", ("shape", "x"))
def lowered_for_sizes():
    def f(x):
        return jnp.tanh(x @ x.T).sum()

    for n in (6, 9, 12):
        jax.jit(f).lower(np.ones((n, n), np.float32))


@case("ahead of time", "f", ("shape", "x"))
def traced_lowered_and_compiled():
    f = jax.jit(lambda x: x * 2)
    f.__wrapped__.__name__ = "f"
    for n in (6, 9, 12):
        f.trace(np.ones(n, np.float32)).lower().compile()


# Fixed fields by their names.


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["gravity"], meta_fields=["iterations", "solver"]
)
@dataclasses.dataclass
class Option:
    """What a model of a physics library has."""

    gravity: Any
    iterations: int
    solver: str


@functools.partial(jax.tree_util.register_dataclass, data_fields=["mass", "opt"], meta_fields=[])
@dataclasses.dataclass
class Model:
    """A model with options."""

    mass: Any
    opt: Option


@case("fixed fields", "step", ("pytree", "m"), says=("iterations",))
def field_of_options():
    @jax.jit
    def step(m):
        return m.mass * m.opt.iterations + m.opt.gravity

    for iterations in (100, 7):
        step(Model(X, Option(X, iterations, "newton")))


@case("fixed fields", "step", ("pytree", "m"))
def word_of_options():
    @jax.jit
    def step(m):
        return m.mass + len(m.opt.solver) + m.opt.gravity

    for solver in ("newton", "cg"):
        step(Model(X, Option(X, 100, solver)))


@case("fixed fields", "step", ("pytree", "o"), says=("iterations",))
def field_of_an_argument():
    @jax.jit
    def step(o):
        return o.gravity * o.iterations

    for iterations in (1, 2, 3):
        step(Option(X, iterations, "cg"))
