"""`harness history`, as a user types it."""

import json
import re

import pytest
from click.testing import CliRunner

from harness.cli import app
from harness.frame.load import frame_of
from harness.report import figures
from harness.verdicts.history import history, series
from tests.frame.trees import write
from tests.verdicts.history.trees import night_name, nights, noisy, stepped

HOSTILE = "<script>alert(1)</script>|حزمة"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    write(results, *nights(stepped()), *nights(stepped(3), workload=HOSTILE, stage="execute"))
    return results


def run(*arguments):
    return CliRunner().invoke(app, ["history", *map(str, arguments)])


def test_the_table_says_what_changed_and_where(tree):
    done = run(tree)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("2 change points: ")
    text = " ".join(done.stdout.split())
    assert re.search(r" [0-9a-f]{8}(\.\.[0-9a-f]{8})? ", text), text
    assert "program equal" in text
    assert "slower" in text
    assert "family.Work size=8" in text
    assert "1.3×" in text
    assert night_name(6) in text
    assert "6 | 6" in text
    assert text.index(night_name(6)) < text.index(night_name(3))
    assert "environment: the program is the same" in text


def test_a_narrow_terminal_shows_everything_too(tree, monkeypatch):
    monkeypatch.setattr("harness.cli.output.console.width", 60)
    done = run(tree)
    for said in ("family.Work size=8 · compile", "slower 1.3×", "points 6 | 6", HOSTILE):
        assert said in done.stdout


def test_markdown_keeps_hostile_names_as_text(tree):
    done = run(tree, "--format", "markdown")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\|حزمة" in done.stdout
    assert "<script>" not in done.stdout


def test_json_and_csv_hold_every_column(tree):
    rows = json.loads(run(tree, "--format", "json").stdout)
    assert [row["workload"] for row in rows] == ["family.Work", HOSTILE]
    assert rows[0]["n_before"] == 6
    assert rows[0]["started_at"].startswith("2026-")
    assert run(tree, "--format", "csv").stdout.startswith("machine,workload,version,size,target")


def test_select_stage_and_since_narrow_it(tree):
    def workloads(*arguments):
        done = run(tree, "--format", "json", *arguments)
        assert done.exit_code == 0
        return [row["workload"] for row in json.loads(done.stdout)]

    assert workloads("-s", "family") == ["family.Work"]
    assert workloads("--stage", "execute") == [HOSTILE]
    assert workloads("--since", night_name(6)) == ["family.Work"]
    assert workloads("--since", night_name(7)) == []


def test_no_change_point_is_said_and_is_no_failure(tree):
    done = run(tree, "--since", night_name(11))
    assert done.exit_code == 0
    assert f"No change point since {night_name(11)}: " in done.stdout


def test_a_stage_that_is_not_there_is_wrong_usage(tree):
    done = run(tree, "--stage", "complie")
    assert done.exit_code != 0
    assert "No stage is called 'complie'. Did you mean 'compile'? There are: " in str(
        done.exception
    )


def test_one_night_is_no_history_and_what_to_do_is_said(tmp_path):
    write(tmp_path, *nights([1.0]))
    done = run(tmp_path)
    assert done.exit_code == 4
    assert "no case has two nights or commits. Measure again with `harness run --ni" in done.output


def test_the_second_night_says_what_moved_and_what_did_not(tmp_path):
    write(tmp_path, *nights(noisy(2, 1)))
    write(tmp_path, *nights([14e-6, 37e-6], axes={"size": 1}))
    done = run(tmp_path)
    assert done.exit_code == 0
    assert "No change point: counts prove none" in done.stdout
    assert "fewer than the 3 points that a change of time needs" in done.stdout
    assert "Seen once, 1: the next night tells whether it stays" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "2026-11-01 → 2026-11-02" in line]
    assert "size=1" in line
    assert "14 µs → 37 µs" in line
    assert "2.64" in line
    assert json.loads(run(tmp_path, "--format", "json").stdout) == []


def test_cuts_are_shown_when_asked_for(tmp_path):
    write(tmp_path, *nights(stepped(), {6: {"version": "1.bbbb"}}, fingerprint=""))
    assert "No change point" in run(tmp_path).stdout
    done = run(tmp_path, "--cuts", "--format", "markdown")
    assert "incomparable" in done.stdout
    assert "version 1.aaaa → 1.bbbb" in done.stdout
    (row,) = json.loads(run(tmp_path, "--cuts", "--format", "json").stdout)
    assert row["ratio"] is row["same_program"] is None, "what is not known"


def test_the_output_is_written_to_a_file(tree, tmp_path):
    output = tmp_path / "new" / "week.md"
    done = run(tree, "--format", "markdown", "-o", output)
    assert done.exit_code == 0
    assert "slower" in output.read_text(encoding="utf-8")
    assert "2 change points written" in done.output
    refused = run(tree, "--format", "markdown", "-o", tmp_path)
    assert "cannot be written" in str(refused.exception)


def test_the_figure_is_drawn(tree, tmp_path):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    output = tmp_path / "history.svg"
    done = run(tree, "--figure", output)
    assert done.exit_code == 0, done.output
    drawn = output.read_text(encoding="utf-8")
    assert "family.Work size=8 · compile" in drawn
    assert "1.3×" in drawn
    assert "<script>" not in drawn


def test_a_figure_has_no_more_panels_than_can_be_read_and_changes_come_first():
    pytest.importorskip("altair")
    records = [one for n in range(14) for one in nights(noisy(4, n), axes={"size": n})]
    frame = frame_of(records + nights(stepped()[:8], axes={"size": 99}))
    chart, there_are = figures.history(series(frame), history(frame))
    # Each case also has the stages that no process measured.
    assert there_are >= 15
    panels = chart.to_dict()["vconcat"]
    assert len(panels) == figures.PANELS
    assert "size=99" in json.dumps(panels[0])
