"""Which night is done, what it is compared and ends with; its environments and commands."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

import msgspec
import pytest

from harness.errors import StoreError, UsageError
from harness.nightly import environments
from harness.nightly.night import without_places
from harness.nightly.state import (
    SCHEMA,
    Environment,
    Night,
    Nights,
    RowCounts,
    StepOutcome,
    Verdicts,
)
from harness.records import json_file

COMMIT = "a" * 40
HOUR_MS = 3_600_000


def rows(ok=5, failed=0, missing=()):
    return RowCounts(1, list(missing), ok, failed, 0, 0, {"tiny.Scale": ok}, {})


def night(name, hours_ago=0.0, code=0, counted=None, **fields):
    """A night, as it is kept."""
    one = Environment("installed", "existing-py3.11-jax0.10.2", {"jax": "0.10.2"})
    one.rows = counted or rows()
    values = {
        **{"schema": SCHEMA, "night": name, "machine": "m", "commit": COMMIT, "effort": "1x1"},
        **{"bench": [], "asked": ["installed"], "without": [], "harness": "0"},
        **{"environments": [one], "exit_code": code},
        "started_at_ms": int(time.time() * 1000 - hours_ago * HOUR_MS),
    }
    return Night(**{**values, **fields})


def verdicts(kind="night", stages_slower=0, **counts):
    return Verdicts(
        *("installed", "before", kind, False, "", (COMMIT, COMMIT), counts, "v.json5"),
        slower_stages=stages_slower,
    )


@pytest.fixture
def nights(tmp_path):
    return Nights(tmp_path, "m")


@pytest.mark.parametrize(
    ("begun", "continued"),
    [
        ({"hours_ago": 5, "code": None}, True),  # before midnight
        ({"hours_ago": 25, "code": None}, False),
        ({"hours_ago": 5, "code": 0}, False),
        ({"hours_ago": 5, "code": None, "commit": "b" * 40}, False),
    ],
    ids=["unfinished", "too old", "finished", "of another commit"],
)
def test_a_night_is_continued_or_it_is_that_of_today(nights, begun, continued):
    nights.save(night("2026-11-19", **begun))
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    assert nights.choose(None, COMMIT) == ("2026-11-19" if continued else today)


def test_a_night_that_is_damaged_or_another_one_is_refused_and_an_old_one_read(nights, tmp_path):
    path = nights.folder / "n.json5"
    nights.save(night("n", effort="3x3"))
    with pytest.raises(UsageError, match=r"was begun at commit aaaaaaaa, and HEAD is bbbbbbbb"):
        nights.choose("n", "b" * 40)
    path.write_text(path.read_text().replace("3x3", "3x4"))
    with pytest.raises(StoreError, match=r"n\.json5 cannot be read: its checksum is wrong\. Its"):
        nights.read("n")
    nights.save(night("n"))
    path.rename(nights.folder / "other.json5")
    with pytest.raises(StoreError, match="it is of the night 'n' of the machine 'm'"):
        nights.read("other")
    path.write_bytes(msgspec.json.encode(night("n", schema=1)))
    assert [one.night for one in nights.all()] == ["n"]
    json_file.write(path, night("n", schema=99))
    with pytest.raises(StoreError, match=r"has schema 99, and this harness reads 1 to 2"):
        nights.read("n")
    assert nights.all() == []
    (tmp_path / "other").write_text("a file where a folder should be")
    with pytest.raises(StoreError, match=r"n\.json5 cannot be written|gitignore cannot be written"):
        Nights(tmp_path, "other").save(night("n"))


def test_a_night_is_compared_with_the_last_good_one(nights):
    now = night("now", code=None)
    nights.save(night("noisy", hours_ago=80, steps={"probe": StepOutcome("noisy")}))
    assert nights.last_good(now, "installed")[0].noisy, "there is no other"
    nights.save(night("quiet", hours_ago=90, code=1))
    nights.save(night("empty", hours_ago=70, code=5, counted=rows(ok=0)))
    nights.save(night("partly", hours_ago=60, code=3, counted=rows(missing=["tiny.Scale"])))
    nights.save(night("unfinished", hours_ago=50, code=None))
    nights.save(night("another effort", hours_ago=40, effort="8x3"))
    nights.save(night("a few benchmarks", hours_ago=30, bench=["Scale"]))
    nights.save(now)
    nights.save(night("later", hours_ago=-1))
    before, environment = nights.last_good(now, "installed")
    assert (before.night, environment.name) == ("quiet", "installed")
    assert nights.last_good(now, "newest") is None


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (0, {}),
        (0, {"verdicts": [verdicts(same=5)]}),
        (0, {"verdicts": [verdicts("release", slower=5)]}),
        (0, {"verdicts": [verdicts(slower=5)], "steps": {"probe": StepOutcome("noisy")}}),
        (1, {"verdicts": [verdicts(slower=1)]}),
        (1, {"verdicts": [verdicts(slower=1)], "steps": {"report": StepOutcome("failed")}}),
        (1, {"verdicts": [verdicts(stages_slower=1, unsure=5)]}),
        (3, {"counted": rows(failed=1), "verdicts": [verdicts(slower=1)]}),
        (7, {"counted": rows(failed=1), "verdicts": [verdicts(slower=1, broken=1)]}),
        (3, {"counted": rows(failed=1), "verdicts": [verdicts("release", broken=1)]}),
        (3, {"counted": rows(missing=["x"])}),
        (3, {"steps": {"measure installed": StepOutcome("failed")}}),
        (3, {"steps": {"rows": StepOutcome("failed", "fewer than in the night before")}}),
        (5, {"counted": rows(ok=0, failed=5)}),
        (5, {"environments": [Environment("newest")]}),
        (6, {"steps": {"environment newest": StepOutcome("failed")}}),
        (6, {"steps": {"history": StepOutcome("failed")}}),
    ],
)
def test_a_night_ends_with_the_gravest_that_holds(code, fields):
    assert night("n", **fields).end() == code


def test_a_note_names_no_folder_and_environments_are_named_once_and_in_order():
    said = "/home/me/a b: pip --index https://me:secret@example.com/simple '/x/y/report.html' 1/2"
    assert without_places(said) == "a b: pip --index (an address) 'report.html' 1/2"
    asked = environments.parse("newest, installed,0.11.2,newest")
    assert asked == ["newest", "installed", "0.11.2"]


def test_the_newest_jax_is_the_newest_that_any_python_on_path_can_have(tmp_path, monkeypatch):
    own = sys.version_info.minor
    other = tmp_path / f"python3.{own + 1}"
    other.write_text("#!/bin/sh\nexit 0\n")
    other.chmod(0o755)
    for minor, release in ((own, "0.10.1"), (own, "0.10.2"), (own + 1, "0.10.2"), (own + 1, "9.9")):
        (tmp_path / f"jaxlib-{release}-cp3{minor}-none-any.whl").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    environments._releases.cache_clear()
    try:
        assert environments.base("") == environments.base("9.9") == str(other)
        assert environments.base("0.10.2") == environments.base("0.10.1") == sys.executable
        assert environments.base("0.99") == sys.executable, "pip says that there is none"
        for index, more in (("", []), ("https://index", ["nightly"])):
            recipe = environments.Recipe(tmp_path, tmp_path, (), index)
            assert environments.by_default(recipe) == ["installed", "newest", *more]
        other.write_text("#!/bin/sh\nexit 1\n")
        assert environments.base("") == sys.executable, "the other one makes no environments"
    finally:
        environments._releases.cache_clear()


DIES = """
import os, pathlib, signal
said = pathlib.Path("said")
before = said.read_text() if said.exists() else ""
said.write_text(before + "x")
if len(before) < {times}:
    os.kill(os.{whose}(), signal.SIGKILL)
"""


@pytest.mark.parametrize("whose", ["getpid", "getppid"], ids=["itself", "what watches it"])
@pytest.mark.parametrize(("times", "code"), [(0, 0), (1, 0), (9, 137)])
def test_a_command_that_is_killed_is_run_once_more(tmp_path, times, code, whose):
    command = [sys.executable, "-c", DIES.format(times=times, whose=whose)]
    assert environments.Runner(tmp_path).run(command, tmp_path / "log") == code
    assert (tmp_path / "said").read_text() == "x" * min(times + 1, 2)
    command = [sys.executable, "-c", "print('once'); raise SystemExit(3)"]
    assert environments.Runner(tmp_path).run(command, tmp_path / "own") == 3
    assert (tmp_path / "own").read_text() == "once\n", "one that fails is not run again"
