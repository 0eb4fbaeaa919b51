"""`harness cache ship -- python train.py`: the first step of programs that nobody has edited."""

from __future__ import annotations

import json

import pytest

from harness.ship import own_program
from tests.forks import harness

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

CLOSED_OVER = """
import jax, numpy as np
data = jax.numpy.asarray(np.random.rand(8, 8))
@jax.jit
def step(x): return x @ data
step(np.ones((8, 8), np.float32))
"""


def ship(*words):
    return harness("cache", "ship", "--processes", "1", *words)


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    pytest.importorskip("flatbuffers")
    program = tmp_path_factory.mktemp("train") / "train.py"
    program.write_text(TRAIN)
    return program


@pytest.fixture(scope="module")
def report(train):
    done = ship("--json", "TRAIN", "--", train)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def ship_by(monkeypatch, command):
    """Ship by some of the ways only: each takes a process, and seconds."""

    def run(numbers, *words):
        some = [own_program.ROUTES[n] for n in numbers]
        monkeypatch.setattr(own_program._OwnProgram, "routes", some)
        return command("cache", "ship", "--processes", 1, *words)

    return run


def compiles_and_hits(row):
    (replicate,) = row["replicates"]
    return replicate["compiles"], replicate["hits"]


def test_a_program_with_state_donation_keys_and_static_arguments_is_shipped(train, ship_by):
    code, out, said = ship_by((3, 6), "--json", "TRAIN", "--", train)
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
def test_every_way_is_proven(report):
    assert [row["path"] for row in report["rows"]] == [way.name for way in own_program.ROUTES]
    assert [row["reason"] for row in report["rows"]] == [""] * len(own_program.ROUTES)


@pytest.mark.nightly
def test_a_warm_cache_answers_all_and_an_executable_is_not_compiled(report):
    counts = {row["path"]: compiles_and_hits(row) for row in report["rows"]}
    all_of_them, none = counts["jit"]
    assert none == counts["jit + cold cache"][1] == counts["export"][1] == 0
    assert counts["jit + warm cache"] == (all_of_them, all_of_them)
    assert counts["export"] == (all_of_them, 0)
    assert counts["serialized executable"] == (all_of_them - 1, 0)
    warm = counts["serialized executable + warm cache"]
    assert warm == (all_of_them - 1, all_of_them - 1)


def test_what_a_function_closes_over_is_another_each_time_and_the_shipped_one_is_refused(ship_by):
    code, out, said = ship_by([5], "--", "-c", CLOSED_OVER)
    assert code == 3, said
    assert "what it closes over is fixed when it is shipped" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("--", "-c", "pass"), 4, "calls no function that `jax.jit` made"),
        (("loss", "--", "-c", CLOSED_OVER), 2, "No function that the program has jitted matches"),
        (("--", "-c", "raise SystemExit('no data')"), 3, "no data"),
        (("--", "nosuch"), 2, "'nosuch' is not on PATH"),
        (("a", "b", "--", "-c", "pass"), 2, "one function before --; got a b"),
        (("a", "b"), 2, "or a program after --; got a b"),
        (("--case", "n=1", "--", "-c", "pass"), 2, "are for workloads"),
    ],
)
def test_what_cannot_be_shipped_is_said(words, code, text):
    done = ship(*words)
    assert (done.returncode, text in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_that_chooses_its_caches_directory_is_refused(tmp_path):
    own = f"import jax; jax.config.update('jax_compilation_cache_dir', '{tmp_path}')"
    done = ship("--", "-c", f"{own}\njax.jit(lambda x: x)(1.0)")
    assert (done.returncode, "chooses its cache's directory itself" in done.stderr) == (2, True)
