"""`harness cache ship -- python train.py`: the first step of programs that nobody has edited."""

from __future__ import annotations

import json

import pytest

from harness.ship import own_program

TRAIN = """
import functools, jax, jax.numpy as jnp, numpy as np

@functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["f"])
@__import__("dataclasses").dataclass
class State:
    w: jax.Array
    f: object

class Trainer:
    @functools.partial(jax.jit, static_argnames=("self", "scale"), donate_argnames="state")
    def train_step(self, state, x, key, scale=2):
        loss = lambda w: jnp.mean(state.f(x @ w) * scale)
        w = state.w - jax.grad(loss)(state.w) + jax.random.normal(key, state.w.shape)
        return State(w, state.f), key

x = np.random.rand(16, 16).astype("float32")  # other numbers each time
state = State(jax.jit(lambda: jnp.ones((16, 16)))(), lambda x: jnp.tanh(x) ** 2)
key = jax.random.key(0)
for _ in range(2):
    state, key = Trainer.train_step(None, state, x, key, scale=3)
print(np.asarray(state.w).sum())
"""

OWN_PLACE = """
import jax
jax.config.update("jax_compilation_cache_dir", "/dev/null/own")
jax.jit(abs)(1.0)
"""

CLOSED_OVER = """
import jax, numpy as np
data = jax.numpy.asarray(np.random.rand(8, 8))
@jax.jit
def step(x): return x @ data
step(np.ones((8, 8), np.float32))
"""

LARGE = """
import jax, numpy as np
data = np.random.default_rng(0).random((512, 512))  # about as large when it is compressed
@jax.jit
def step(x): return x @ data
step(jax.numpy.ones((8, 512)))
"""

CALLS_BACK = """
import jax
@jax.jit
def step(x):
    jax.debug.print("{}", x)
    return x
step(1.0)
"""

SOLVE = """
import jax, numpy as np
@jax.jit
def step(x): return jax.numpy.linalg.solve(x, x)
step(np.eye(8, dtype="float32"))
"""


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    pytest.importorskip("flatbuffers")
    program = tmp_path_factory.mktemp("train") / "train.py"
    program.write_text(TRAIN)
    return program


@pytest.fixture
def ship(monkeypatch, command):
    """Ship by some of the ways only: each takes a process, and seconds."""

    def run(*words, ways=range(7)):
        some = [own_program.ROUTES[n] for n in ways]
        monkeypatch.setattr(own_program._OwnProgram, "routes", some)
        return command("cache", "ship", "--processes", 1, *words)

    return run


def compiles_and_hits(row):
    (replicate,) = row["replicates"]
    return replicate["compiles"], replicate["hits"]


def test_a_program_with_state_donation_keys_and_static_arguments_is_shipped(train, ship):
    code, out, said = ship("--format=json", "TRAIN", "--", train, ways=(3, 6))
    assert code == 0, said
    report = json.loads(out)
    assert report["workload"] == "train_step"
    for row in report["rows"]:
        assert (row["path"], row["reason"]) == (row["path"], "")
        (replicate,) = row["replicates"]
        assert set(replicate["steps_s"]) == {"before", "step"}
        assert min(replicate["steps_s"].values()) > 0
    (all_of_them, none), warm = map(compiles_and_hits, report["rows"])
    assert (none, warm) == (0, (all_of_them - 1, all_of_them - 1))


@pytest.mark.nightly
def test_every_way_is_proven_and_its_compiles_and_hits_are_counted(train, ship):
    code, out, said = ship("--format=json", "TRAIN", "--", train)
    assert code == 0, said
    rows = json.loads(out)["rows"]
    assert [(row["path"], row["reason"]) for row in rows] == [
        (way.name, "") for way in own_program.ROUTES
    ]
    every = rows[0]["replicates"][0]["compiles"]
    expected = {
        "jit": (every, 0),
        "jit + cold cache": (every, 0),
        "jit + warm cache": (every, every),
        "export": (every, 0),
        "serialized executable": (every - 1, 0),
        "serialized executable + warm cache": (every - 1, every - 1),
    }
    assert expected.items() <= {row["path"]: compiles_and_hits(row) for row in rows}.items()


def test_what_a_function_closes_over_is_another_each_time_and_the_shipped_one_is_refused(ship):
    code, out, said = ship("--", "-c", CLOSED_OVER, ways=[5])
    assert code == 3, said
    assert "what it closes over is fixed when it is shipped" in " ".join(out.split())


def test_the_bytes_of_a_cache_are_without_what_is_compiled_to_compare_alone(ship):
    code, out, said = ship("--format=json", "--", "-c", LARGE, ways=[5, 6])
    assert code == 0, said
    executable, with_cache = (row["shipped_bytes"] for row in json.loads(out)["rows"])
    assert 2**20 < executable < with_cache < 1.1 * executable


def test_what_calls_python_back_is_told_in_words(ship):
    code, out, said = ship("--format=json", "--", "-c", CALLS_BACK, ways=[3, 5])
    assert code == 0, said
    assert all("it calls Python back" in row["reason"] for row in json.loads(out)["rows"])


def test_where_a_program_crashes_that_was_loaded_the_known_reason_is_told(ship):
    code, out, said = ship("--", "-c", SOLVE, ways=[5])
    assert code == 0, said
    assert "killed by SIGSEGV" in out
    assert "LAPACK" in out


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("--", "-c", "pass"), 4, "calls no function that `jax.jit` made"),
        (("loss", "--", "-c", CLOSED_OVER), 2, "No function that the program has jitted matches"),
        (("--", "-c", OWN_PLACE), 2, "chooses its cache's directory itself"),
        (("--", "-c", "raise SystemExit('no data')"), 3, "no data"),
        (("--", "-c", f"input(){CLOSED_OVER}"), 3, "EOFError"),
        (("--", "nosuch"), 2, "'nosuch' is not on PATH"),
        (("a", "b", "--", "-c", "pass"), 2, "one function before --; got a b"),
        (("a", "b"), 2, "or a program after --; got a b"),
        (("--case", "n=1", "--", "-c", "pass"), 2, "are for workloads"),
    ],
)
def test_what_cannot_be_shipped_is_said(ship, words, code, text):
    ended, _, said = ship(*words)
    assert (ended, text in said) == (code, True), said
