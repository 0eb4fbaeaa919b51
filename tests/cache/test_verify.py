"""Entries are rebuilt by a run of their program and compared; the directory stays as it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.cache.filled import START, entry_of, environment

PROGRAM = (
    START
    + """
jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
for function in (first, second, third): jax.block_until_ready(jax.jit(function)(x))
print("ended by itself")
"""
)


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def fill(file, cache, **variables):
    subprocess.run([sys.executable, file], env=environment(cache, **variables), check=True)
    return cache


def verified(says, monkeypatch, cache, file, most, code=0):
    for name, value in environment(cache).items():
        monkeypatch.setenv(name, value)
    words = "doctor", cache, "--settle", "0", "--format=json", "--verify", most
    return json.loads(says(*words, "--", file, code=code).partition("{")[2].join(["{", ""]))


def everything(cache):
    return {
        path.name: (path.read_bytes(), path.stat().st_atime_ns, path.stat().st_mtime_ns)
        for path in cache.iterdir()
    }


def test_a_wrong_entry_is_reported_and_the_directory_is_not_touched(
    program, tmp_path, says, monkeypatch
):
    cache = fill(program, tmp_path / "cache")
    other = fill(program, tmp_path / "other", XLA_FLAGS="--xla_cpu_enable_fast_math=true")
    shutil.copyfile(entry_of(other, "jit_second"), wrong := entry_of(cache, "jit_second"))
    before = everything(cache)
    seen = verified(says, monkeypatch, cache, program, 20, code=5)
    verdicts = {
        one["name"].partition("-")[0]: one["verdict"] for one in seen["verified"]["entries"]
    }
    assert verdicts == {"jit_first": "equal", "jit_second": "wrong", "jit_third": "equal"}
    (finding,) = (f for f in seen["findings"] if f["check"] == "not-as-rebuilt")
    assert (finding["severity"], finding["fix"]["command"]) == ("unusable", f"rm -- {wrong}")
    after = everything(cache)
    assert after == before


def test_a_program_is_ended_when_enough_entries_are_rebuilt(program, tmp_path, says, monkeypatch):
    cache = fill(program, tmp_path / "cache")
    seen = verified(says, monkeypatch, cache, program, 1)
    (entry,) = seen["verified"]["entries"]
    assert (entry["name"].partition("-")[0], entry["verdict"]) == ("jit_first", "equal")
    assert seen["verified"]["exit_code"] == 0
    assert os.listdir(cache)
    says("doctor", cache, "--verify", "1", code=2, said="belong together")
