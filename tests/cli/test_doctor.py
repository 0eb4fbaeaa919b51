"""`harness doctor`: what this machine can measure, and what to do about it."""

from __future__ import annotations

import json
import os

import pytest

from harness.measure import lock
from tests import forks
from tests.frame.trees import record, write


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


FOREIGN = "1 foreign or unreadable file (no records in it)"


def spoiled(content):
    return lambda file: file.write_bytes(content(file.read_bytes().splitlines(keepends=True)))


@pytest.mark.parametrize(
    ("spoil", "code", "found"),
    [
        (lambda file: None, 0, ["1 file in {tree}, every line readable"]),
        (
            spoiled(lambda lines: b"".join([b"{" + lines[0], b"{" + lines[1], lines[2]])),
            1,
            ["{file}: 2 damaged lines"],
        ),
        (spoiled(lambda lines: b"".join(lines)[:-9]), 1, ["{file}: 1 unfinished last line"]),
        (lambda file: file.with_name("a.jsonl").write_text("mine"), 1, [f"{{a}}: {FOREIGN}"]),
    ],
    ids=["healthy", "damaged", "torn", "foreign"],
)
def test_damaged_and_foreign_lines_of_a_results_tree_are_counted_by_file(
    tmp_path, spoil, code, found
):
    file = write(tmp_path, record(0), record(1), record(2))
    spoil(file)
    done = forks.harness("doctor", "-r", str(tmp_path), "--format", "json")
    names = {"tree": tmp_path, "file": file.relative_to(tmp_path), "a": "box/records/a.jsonl"}
    rows = [row for row in json.loads(done.stdout) if row["what"] == "results"]
    assert [row["found"] for row in rows] == [text.format(**names) for text in found]
    assert (done.returncode, bool(rows[0]["advice"])) == (code, code == 1)
