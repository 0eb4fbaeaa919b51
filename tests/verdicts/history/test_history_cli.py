"""`harness history`, as a user types it."""

import json
import re

import pytest
from click.testing import CliRunner

from harness.cli import app
from harness.program.facts import Facts
from tests.frame.trees import write
from tests.verdicts.history.trees import night_name, nights, noisy, stepped

HOSTILE = "<script>alert(1)</script>|حزمة"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    write(results, *nights(stepped()), *nights(stepped(3), workload=HOSTILE, stage="execute"))
    return results


def run(*arguments):
    return CliRunner().invoke(app, ["history", "-r", *map(str, arguments)])


def test_the_table_says_what_changed_and_where(tree, monkeypatch):
    done = run(tree)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("2 change points: ")
    text = " ".join(done.stdout.split())
    assert re.search(r" [0-9a-f]{8}(\.\.[0-9a-f]{8})? ", text), text
    for said in ("program equal", "slower", "family.Work size=8", "1.3×", "6 | 6"):
        assert said in text
    assert text.index(night_name(6)) < text.index(night_name(3))
    assert "environment: the program is the same" in text
    monkeypatch.setattr("harness.cli.output.console.width", 60)
    narrow = run(tree).stdout
    assert all(len(line) <= 60 for line in narrow.splitlines())
    for said in ("slower", "compile", "1.3×"):
        assert said in narrow


def test_markdown_is_written_to_a_file_and_keeps_hostile_names_as_text(tree, tmp_path):
    output = tmp_path / "new" / "week.md"
    done = run(tree, "--format", "markdown", "-o", output)
    assert done.exit_code == 0
    assert "2 change points written" in done.output
    text = output.read_text(encoding="utf-8")
    assert "slower" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\|حزمة" in text
    assert "<script>" not in text
    refused = run(tree, "--format", "markdown", "-o", tmp_path)
    assert "cannot be written" in str(refused.exception)


def test_json_and_csv_hold_every_column(tree):
    rows = json.loads(run(tree, "--format", "json").stdout)
    assert [row["workload"] for row in rows] == ["family.Work", HOSTILE]
    assert rows[0]["n_before"] == 6
    assert rows[0]["started_at"].startswith("2026-")
    assert run(tree, "--format", "csv").stdout.startswith("machine,workload,version,size,target")


@pytest.mark.nightly
def test_select_stage_and_since_narrow_it(tree):
    for words, left in (
        (("-s", "family"), ["family.Work"]),
        (("--stage", "execute"), [HOSTILE]),
        (("--since", night_name(6)), ["family.Work"]),
        (("--since", night_name(7)), []),
    ):
        rows = json.loads(run(tree, "--format", "json", *words).stdout)
        assert [row["workload"] for row in rows] == left
    done = run(tree, "--since", night_name(11))
    assert done.exit_code == 0
    assert f"No change point since {night_name(11)}: " in done.stdout
    wrong = str(run(tree, "--stage", "complie").exception)
    assert "No stage is called 'complie'. Did you mean 'compile'? There are: " in wrong
    wrong = str(run(tree, "--since", "yesterday").exception)
    names = f"{night_name(0)} to {night_name(11)}"
    assert wrong == f"--since 'yesterday': no night is called so. There are {names}."
    wrong = str(run(tree, "--since", "2026-13-45").exception)
    assert wrong.startswith("--since '2026-13-45': month must be in 1..12")


def test_one_night_is_no_history_and_what_to_do_is_said(tmp_path):
    write(tmp_path, *nights([1.0]))
    done = run(tmp_path)
    assert done.exit_code == 4
    assert "no case has two nights or commits. Measure again with `harness run --ni" in done.output


def test_three_nights_are_enough_for_a_change_of_time(tmp_path):
    write(tmp_path, *nights(noisy(3, 1)))
    assert "points that a change of time needs" not in run(tmp_path).stdout


def test_the_second_night_says_what_moved_and_what_did_not(tmp_path):
    write(tmp_path, *nights(noisy(2, 1)))
    write(tmp_path, *nights([14e-6, 37e-6], axes={"size": 1}))
    done = run(tmp_path)
    assert done.exit_code == 0
    assert "No change point: counts prove none" in done.stdout
    assert "2 of 2 series have fewer than the 3 points that a change of time" in done.stdout
    assert "Seen once, 1: the next night tells whether it stays" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "2026-11-01 → 2026-11-02" in line]
    assert "size=1" in line
    assert "14 µs → 37 µs" in line
    assert "2.64" in line
    assert json.loads(run(tmp_path, "--format", "json").stdout) == []
    assert "Seen once" not in run(tmp_path, "--since", "2026-11-03").stdout
    assert "Seen once" in run(tmp_path, "--since", "2026-11-02").stdout


def test_what_is_a_change_point_is_not_told_again_as_seen_once(tmp_path):
    fused = {"facts": Facts(fusions=3), "fingerprint": "f1"}
    write(tmp_path, *nights([1e-2, 3e-2], {1: fused}, facts=Facts(fusions=2)))
    said = run(tmp_path).stdout
    assert "1 change point: 1 slower." in said
    assert "Seen once" not in said


@pytest.mark.nightly
def test_cuts_are_shown_when_asked_for(tmp_path):
    write(tmp_path, *nights(stepped(), {6: {"version": "1.bbbb"}}, fingerprint=""))
    assert "No change point" in run(tmp_path).stdout
    done = run(tmp_path, "--cuts", "--format", "markdown")
    assert "incomparable" in done.stdout
    assert "version 1.aaaa → 1.bbbb" in done.stdout
    (row,) = json.loads(run(tmp_path, "--cuts", "--format", "json").stdout)
    assert row["ratio"] is row["same_program"] is None, "what is not known"
