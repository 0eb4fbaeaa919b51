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


def test_what_is_here_is_told_and_where_nothing_is_set_up_what_to_do(tmp_path):
    found = looks(cwd=tmp_path)
    assert "cpu" in found["measured on"]["found"]
    assert "jaxlib" in found["versions"]["found"]
    assert found["git"]["advice"].endswith("git init.")
    assert "`harness init`" in found["workloads"]["advice"]
    assert "`harness aa --power`" in found["error rates"]["advice"]
    low, _, high = found["a loop of 1 ms"]["found"].partition("; slowest over median: ")
    assert float(low.rpartition(" ")[2]) >= 1 <= float(high)
    assert not list(tmp_path.iterdir())
    elsewhere = looks("--results", "elsewhere", cwd=tmp_path)
    assert elsewhere["error rates"]["found"].startswith("not measured")


def test_who_measures_now_is_named(tmp_path):
    here = {**os.environ, "HARNESS_LOCKS": str(tmp_path)}
    previous = os.environ.get("HARNESS_LOCKS")
    os.environ["HARNESS_LOCKS"] = str(tmp_path)
    try:
        with lock.measuring(print):
            found = looks(environment=here)["measuring now"]
    finally:
        os.environ.pop("HARNESS_LOCKS")
        if previous is not None:
            os.environ["HARNESS_LOCKS"] = previous
    assert str(os.getpid()) in found["found"]
    assert found["advice"]
    assert looks(environment=here)["measuring now"]["found"] == "nobody"
