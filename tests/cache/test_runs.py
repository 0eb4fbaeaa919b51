from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from harness.cache.ledger import read
from harness.jaxhooks.writer import encoded
from tests.cache.causes import Runs

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
    run = Runs(tmp_path_factory.mktemp("runs"))
    for argument in "112":
        run(PROGRAM, argument)
    return run.folder


def names(runs, *wanted):
    return [f"{runs}/book_{('cold', 'warm', 'changed').index(name) + 1}.jsonl" for name in wanted]


def test_the_newest_run_is_held_against_the_last_good_one(runs, says):
    found = json.loads(says("ledger", "--format=json", *names(runs, "changed", "cold", "warm")))
    assert [one["ledger"] for one in found["runs"]] == names(runs, "cold", "warm", "changed")
    assert [found[one]["ledger"] for one in ("good", "newest")] == names(runs, "warm", "changed")
    [cause] = found["causes"]
    assert cause["modules"] == ["jit_step"]
    assert [one["kind"] for one in cause["why"]["changes"]] == ["constant"]
    rows = {row["module"]: row for row in found["modules"]}
    assert list(rows) == ["jit_step", "jit_other"]
    assert (rows["jit_step"]["hits"], rows["jit_other"]["hits"]) == (0, 1)
    cold, changed = (
        {event.module: event for event in read(book).events}
        for book in names(runs, "cold", "changed")
    )
    spared_s, lost_s = cold["jit_other"].compile_ns / 1e9, changed["jit_step"].compile_ns / 1e9
    saved_s = spared_s - changed["jit_other"].load_ns / 1e9
    assert rows["jit_other"]["saved_s"] == pytest.approx(saved_s)
    rate = pytest.approx(spared_s / (spared_s + lost_s))
    assert found["hit_rate_by_seconds"] == [rate, rate]
    [host] = found["hosts"]
    assert (host["requests"], host["hits"], host["processes"]) == (2, 1, 1)


def test_a_compile_counts_once_for_what_its_key_takes(runs, tmp_path, says):
    """The sums of a run are those of its modules, though it compiled what others did as well."""
    (cold,), (warm,) = (
        [event for event in read(book).events if event.module == "jit_step"]
        for book in names(runs, "cold", "warm")
    )
    slower = replace(cold, compile_ns=cold.compile_ns + 2 * 10**9)
    for name, events in (("earlier", [cold]), ("newest", [slower, warm])):
        (tmp_path / name).write_bytes(b"".join(map(encoded, events)))
    found = json.loads(says("ledger", "--format=json", tmp_path / "earlier", tmp_path / "newest"))
    saved_s = 1 + (cold.compile_ns - warm.load_ns) / 1e9
    assert found["newest"]["saved_s"] == pytest.approx(saved_s)
    assert found["modules"][0]["saved_s"] == pytest.approx(saved_s)


def test_a_page_says_the_answer_first_and_fails_under_a_rate(runs, says):
    every = names(runs, "cold", "warm", "changed")
    page = says("ledger", "--fail-under", 90, *every, code=1, said="FAILED")
    assert page.splitlines()[0].endswith(" the last good run, spent 0 s.")
    says("ledger", "--fail-under", 100, *every[:2])
    says("ledger", "--format", "markdown", *every, said="| jit_step")
    # What the hits saved is known to a second alone: nobody knows whether that is enough.
    says("ledger", "--fail-under", 50, every[2], said="unknown whether")


def test_wrong_ledgers_are_one_line(runs, tmp_path, says):
    [one] = names(runs, "cold")
    (tmp_path / "text").write_text("no ledger\n")
    (tmp_path / "empty").touch()
    says("ledger", one, one, code=2, said="given twice")
    says("ledger", one, "--fail-under", 90, code=2, said="options come before the files")
    words = "-o", tmp_path / "new", "--fail-under", 90, "--", "-c", "pass"
    says("ledger", *words, code=2, said="are for recordings")
    for name, code, said in (
        ("missing", 2, "cannot be read"),
        ("text", 4, "is no recording"),
        ("empty", 4, "No compile request"),
    ):
        says("ledger", tmp_path / name, code=code, said=said)


def test_two_variables_give_each_process_of_a_job_a_ledger_in_a_folder(runs, tmp_path, says):
    job = tmp_path / "job"
    told = says("ledger", "--variables", f"{job}/")
    script = f"{told}\nfor i in 1 2; do {sys.executable} {runs}/program_1.py $i & done; wait"
    subprocess.run(["sh", "-c", script], check=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    files = list(job.glob("*.jsonl"))
    assert len(files) == 2
    found = read(job)
    assert len(found.events) == sum(len(read(file).events) for file in files) == 4
    hashed = [c for e in found.events for c in e.components if c.name == "compile_options"]
    assert all(found.parts.get(f"{each.sha256}.json") for each in hashed)
    says("ledger", job, said="0 of 4 compiles were hits")
    says("ledger", "--variables", "a", "b", code=2, said="one ledger")
