"""What settings of the cache would save, from the requests of a recording."""

from __future__ import annotations

import json

import pytest

from harness.cache.ledger import later_directories, later_directory
from harness.cache.saved import (
    CHECKS,
    DIRECTORY,
    ENABLED,
    LEAST_BYTES,
    LEAST_S,
    MOST_BYTES,
    CacheSetting,
    cache_settings,
)
from harness.jaxhooks import events
from harness.jaxhooks.events import Overridden, Request
from harness.jaxhooks.writer import encoded
from harness.output.cache import setting_text

MS = 10**6


def miss(reason, compile_ms=500, **more):
    return Request("jit_f", compile_ms * MS, "unwritten", "k", reason, compile_ms * MS, **more)


HIT = Request("jit_g", 50 * MS, "hit", "g", load_ns=50 * MS, directory="/cache")
BELOW = {"value": 0.5, "limit": 1.0}
LATE = {"detail": events.OFF_AT_FIRST_USE, "limit": 1.0}
OWN = (Overridden(LEAST_S, "0", "60.0"),)


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([miss(events.BELOW_TIME, **BELOW)] * 2 + [HIT], [(LEAST_S, "0", 0.9, 2, "1", "set")]),
        (
            [miss(events.NO_DIRECTORY, 400, limit=1.0), miss(events.NO_DIRECTORY, 2000, limit=1.0)],
            [
                (DIRECTORY, "DIR", 2.0, 1, "", "set", True),
                (LEAST_S, "0", 0.4, 1, "1", "set", True),
            ],
        ),
        (
            [miss(events.NO_DIRECTORY, limit=0.0), HIT],
            [(DIRECTORY, "/cache", 0.45, 1, "", "early")],
        ),
        (
            [miss(events.BELOW_TIME, value=0.5, limit=60.0, overridden=OWN), HIT],
            [(LEAST_S, "0", 0.45, 1, "60", "program")],
        ),
        (
            [miss(events.DISABLED, detail=events.SWITCHED_OFF, limit=0.0)],
            [(ENABLED, "True", 0.5, 1, "False", "set", True)],
        ),
        (
            [miss(events.DISABLED, 2000, **LATE)],
            [(ENABLED, "True", 2.0, 1, "False", "early", True)],
        ),
        ([miss(events.DISABLED, detail=events.CANNOT_SERIALISE)], []),
        (
            [miss(events.BELOW_SIZE, value=9, limit=100), miss(events.OVER_CAP, limit=5), HIT],
            [
                (LEAST_BYTES, "-1", 0.45, 1, "100", "set"),
                (MOST_BYTES, "-1", 0.45, 1, "5", "set"),
            ],
        ),
        ([miss(events.CHECKED), HIT], [(CHECKS, "False", 0.45, 1, "", "set")]),
        (
            [Request("jit_f", MS, "hit", load_ns=MS, lock_wait_ns=30 * MS)],
            [(MOST_BYTES, "-1", 0.03, 1, "", "lock")],
        ),
        ([HIT, Request("jit_f", MS, "written", "k", "", MS)], []),
    ],
)
def test_each_setting_has_its_value_and_what_it_saves(requests, expected):
    assert cache_settings(requests) == [CacheSetting(*one) for one in expected]


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (
            CacheSetting(LEAST_S, "0", 1.9, 12, "1", at_most=True),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 (now 1) would save at most 1.9 s at each "
            "later start (12 programs).",
        ),
        (
            CacheSetting(DIRECTORY, "DIR", 0.0, 0),
            "JAX_COMPILATION_CACHE_DIR=DIR would save nothing by itself at each later start.",
        ),
        (
            CacheSetting(DIRECTORY, "/c", 2.0, 1, how="early"),
            "jax_compilation_cache_dir was set to /c too late: set before the first compile, it "
            "would save 2.0 s at each later start (1 program).",
        ),
        (
            CacheSetting(LEAST_S, "0", 2.0, 1, "60", "program"),
            "The program sets jax_persistent_cache_min_compile_time_secs to 60 itself; 0 there "
            "would save 2.0 s at each later start (1 program).",
        ),
        (
            CacheSetting(MOST_BYTES, "-1", 0.03, 1, how="lock"),
            "30 ms went into waiting for the lock of a directory with a size cap, which no "
            "directory without a cap has (JAX_COMPILATION_CACHE_MAX_SIZE=-1).",
        ),
    ],
)
def test_a_setting_in_words(setting, text):
    assert setting_text(setting) == text


def test_the_command_names_what_a_setting_would_save(tmp_path, says):
    path = tmp_path / "book.jsonl"
    requests = [miss(events.BELOW_TIME, at_s=1e9, pid=1, host="a", **BELOW), HIT]
    path.write_bytes(b"".join(map(encoded, requests)))
    assert "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 (now 1)" in says("ledger", path)
    (setting,) = json.loads(says("ledger", "--format=json", path))["settings"]
    assert (setting["setting"], setting["value"], setting["saves_s"]) == (LEAST_S, "0", 0.45)
    assert "1 of 2 requests hit; 1 left no entry." in says("explain", path)


def test_where_a_process_had_a_directory_later_is_found_in_one_pass():
    early = [miss(events.NO_DIRECTORY, at_s=float(n), pid=1) for n in range(20_000)]
    last = later_directories([*early, miss("", directory="/c", at_s=3e4, pid=1)])
    assert {later_directory(one, last) for one in early} == {"/c"}
    assert later_directory(miss(events.NO_DIRECTORY, at_s=1.0, pid=2), last) == ""
