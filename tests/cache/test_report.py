from __future__ import annotations

import json
import os
import subprocess
import sys

import msgspec
import pytest

from harness.cache import advice
from harness.cache.advice import Tried
from harness.cache.ledger import read
from harness.cli.cache import advise
from tests.cache.filled import ended, run_harness

PROGRAM = """
import os, sys, jax, numpy as np
add = float(sys.argv[1])
def step(x):
    for _ in range(40):
        x = x @ x * 0.01 + add
    return x
def other(x): return x - 1
for f in (step, other):
    jax.block_until_ready(jax.jit(f)(np.ones((8, 8), np.float32)))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Ledgers of a cold run, a warm one, and one with another constant, and their program."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "train.py").write_text(PROGRAM)
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    for name, argument in (("cold", "1"), ("warm", "1"), ("changed", "2")):
        command = ("ledger", "-o", str(folder / f"{name}.jsonl"), "--")
        ended(run_harness(*command, str(folder / "train.py"), argument, env=settings), 0)
    return folder


def names(runs, *wanted):
    return [str(runs / f"{name}.jsonl") for name in wanted]


def test_the_newest_run_is_held_against_the_last_good_one(runs):
    done = run_harness("report", *names(runs, "changed", "cold", "warm"), "--json")
    found = json.loads(done.stdout)
    assert found["newest"]["ledger"].endswith("changed.jsonl")
    assert found["good"]["ledger"].endswith("warm.jsonl")
    assert [one["ledger"].split("/")[-1] for one in found["runs"]] == [
        "cold.jsonl",
        "warm.jsonl",
        "changed.jsonl",
    ]
    [cause] = found["causes"]
    assert cause["modules"] == ["jit_step"]
    assert "constant" in cause["verdict"]
    rows = {row["module"]: row for row in found["modules"]}
    assert (rows["jit_step"]["hits"], rows["jit_other"]["hits"]) == (0, 1)
    assert found["modules"][0]["module"] == "jit_step"
    cold = {event.module: event for event in read(runs / "cold.jsonl").events}
    hit = next(e for e in read(runs / "changed.jsonl").events if e.outcome == "hit")
    saved_s = cold["jit_other"].compile_s - hit.load_s
    assert rows["jit_other"]["saved_s"] == pytest.approx(saved_s)
    low, high = found["hit_rate_by_seconds"]
    assert low == high
    assert 0 < low < 0.5
    [host] = found["hosts"]
    assert (host["requests"], host["hits"], host["processes"]) == (2, 1, 1)


def test_a_page_says_the_answer_first_and_fails_under_a_rate(runs):
    every = names(runs, "cold", "warm", "changed")
    page = run_harness("report", *every, "--fail-under", "90")
    ended(page, 1, "FAILED")
    assert page.stdout.splitlines()[0].endswith(" the last good run, spent 0 s.")
    ended(run_harness("report", *every[:2], "--fail-under", "100"), 0)
    markdown = run_harness("report", *every, "--format", "markdown")
    assert "| jit_step" in markdown.stdout
    # What the hits saved is known to a second alone: nobody knows whether that is enough.
    ended(run_harness("report", every[2], "--fail-under", "50"), 0, "nobody knows")


def test_wrong_ledgers_are_one_line(runs, tmp_path):
    [one] = names(runs, "cold")
    ended(run_harness("report", one, one), 2, "given twice")
    ended(run_harness("report", str(tmp_path / "missing")), 4, "cannot be read")
    (tmp_path / "text").write_text("no ledger\n")
    ended(run_harness("report", str(tmp_path / "text")), 4, "is no ledger")
    (tmp_path / "empty").touch()
    ended(run_harness("report", str(tmp_path / "empty")), 4, "No compile request")


def test_two_variables_give_each_process_of_a_job_a_ledger_in_a_folder(runs, tmp_path):
    told = run_harness("ledger", "--variables", f"{tmp_path}/job/")
    ended(told, 0)
    script = f"{told.stdout}\nfor i in 1 2; do {sys.executable} {runs}/train.py $i & done; wait"
    subprocess.run(["sh", "-c", script], check=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    files = list((tmp_path / "job").glob("*.jsonl"))
    assert len(files) == 2
    found = read(tmp_path / "job")
    assert len(found.events) == sum(len(read(file).events) for file in files) == 4
    hashed = [c for e in found.events for c in e.components if c.name == "compile_options"]
    assert all(found.parts.get(f"{each.sha256}.json") for each in hashed)
    ended(run_harness("report", str(tmp_path / "job")), 0, "0 of 4 compiles were hits")
    ended(run_harness("ledger", "--variables", "a", "b"), 2, "one ledger")


@pytest.mark.parametrize(
    ("settings", "hits"),
    [
        pytest.param(advice.SETTINGS, [0, 0, 2, 2], marks=pytest.mark.nightly),
        ((advice.NONE, advice.EVERY), [0, 2]),  # each takes two processes
    ],
)
def test_settings_are_tried_on_the_users_own_program(runs, monkeypatch, command, settings, hits):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "x")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.0001")
    monkeypatch.setattr(advice, "SETTINGS", settings)
    words = "advise", "--starts", 1, "--json", "--", runs / "train.py", "1"
    code, out, said = command("cache", *words)
    assert code == 0, said
    every = json.loads(out)["settings"]
    found = {one["setting"]["name"]: one for one in every}
    assert list(found) == [one.name for one in (*settings, advice.own_setting(os.environ))]
    assert [one["later"][0]["hits"] for one in every] == [*hits, 2]
    assert all(one["size_bytes"] == 0 for one, none in zip(every, hits, strict=False) if not none)
    assert found["every compile"]["size_bytes"] > 0
    assert found["every compile"]["later"][0]["compile_s"] == 0
    assert found["no cache"]["later"][0]["compile_s"] > 0
    answer, table, *_ = advise._page([msgspec.convert(one, Tried) for one in every])
    assert "a start takes" in answer or " saves " in answer
    assert list(table.frame["setting"]) == list(found)


def test_a_program_that_settings_cannot_be_tried_on_is_said(tmp_path):
    fixed = tmp_path / "fixed.py"
    fixed.write_text(
        f"import jax; jax.config.update('jax_compilation_cache_dir', '{tmp_path}/own')"
        "\njax.jit(lambda x: x + 1)(1.0)"
    )
    ended(run_harness("advise", "--", str(fixed)), 2, "chooses its cache's directory itself")
    ended(run_harness("advise", "--", "-c", "raise SystemExit('no data')"), 3, "no data")
    ended(run_harness("advise", "--starts", "1", "--", "-c", "pass"), 4, "compiles nothing")
