"""`harness doctor`: what this machine can measure, and what to do about it."""

from __future__ import annotations

import json
import os

from harness.engine import lock
from tests import forks


def looks(*arguments, **options):
    done = forks.harness("doctor", "--format", "json", *arguments, **options)
    assert done.returncode == 0, done.stderr
    return {row["what"]: row for row in json.loads(done.stdout)}


def test_what_is_here_who_measures_and_what_to_do_where_nothing_is_set_up(tmp_path, monkeypatch):
    empty, locks = tmp_path / "empty", tmp_path / "locks"
    empty.mkdir()
    locks.mkdir()
    monkeypatch.setenv("HARNESS_LOCKS", str(locks))
    with lock.measuring(print):
        found = looks(cwd=empty, environment=dict(os.environ))
    assert "cpu" in found["measured on"]["found"]
    assert "jaxlib" in found["versions"]["found"]
    assert found["git"]["advice"].endswith("git init.")
    assert "`harness init`" in found["workloads"]["advice"]
    assert "`harness aa --power`" in found["error rates"]["advice"]
    assert str(os.getpid()) in found["measuring now"]["found"]
    assert found["measuring now"]["advice"]
    low, _, high = found["a loop of 1 ms"]["found"].partition("; slowest over median: ")
    assert float(low.rpartition(" ")[2]) >= 1 <= float(high)
    assert not list(empty.iterdir())
    elsewhere = looks("--results", "elsewhere", cwd=empty, environment=dict(os.environ))
    assert elsewhere["error rates"]["found"].startswith("not measured")
    assert elsewhere["measuring now"]["found"] == "nobody"
