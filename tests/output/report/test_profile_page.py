"""The page of a profile as text, and what is in its sections."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest

from harness.errors import StoreError
from harness.output.report.page import render, write_images
from harness.output.report.profile.face import Profile
from harness.output.report.profile.page import profile_report
from harness.output.report.profile.sections import causes, plain, timeline
from harness.output.report.profile.sections import sites as tree
from harness.output.report.profile.tables import MOST, Shown
from tests.output.report.pages import answers, section, table
from tests.profiles import synthetic


def test_the_answer_stands_first(hostile_profile):
    said = answers(hostile_profile)
    assert list(said)[:2] == ["In short", "What costs most"]
    assert "went into building" in said["In short"][0]
    assert any("cut off" in line for line in said["What to know about the numbers"])
    assert any("paths" in line for line in said["What to know about the numbers"])
    assert "Exit code 0." in said["What was profiled"]


@pytest.mark.nightly
@pytest.mark.parametrize("builds", [40, 2_500])
def test_seconds_of_the_timeline_are_those_of_the_builds_however_few_bars_there_are(builds):
    profile = synthetic.profile(builds=builds, hostile=False)
    found = timeline.timeline(Shown(profile))
    bars = found.bars.sort_values(["row", "stage", "begin"])
    seconds = (bars["end"] - bars["begin"]).groupby(bars["stage"]).sum()
    whole = profile.frame("builds")
    for stage in ("trace", "lower", "compile", "load"):
        assert seconds[stage] == pytest.approx(whole[f"{stage}_s"].sum(), abs=1e-9)
    assert len(bars) <= timeline.MOST_BARS
    assert bool(found.notes) == (bars["builds"].max() > 1) == (builds > 40)
    assert bars["builds"].sum() == 2 * 3 * builds + 17  # imports, back ends, nested builds
    for _, some in bars.groupby(["row", "stage"]):
        assert (some["end"].iloc[:-1].values <= some["begin"].iloc[1:].values + 1e-9).all()
    assert found.rows[0] == "train.py[4711] main"


def test_the_tree_adds_up_and_has_the_largest_first():
    profile = synthetic.profile(hostile=False)
    root = tree.grown(profile)
    assert root.ns == sum(built.build_ns for built in profile.builds)
    nodes = tree.nodes(root)
    assert nodes[0].share == 1.0
    assert nodes[0].text == "main  train.py:88"  # the library's line beside it is left out
    assert "lib/run.py:5" in nodes[0].note
    shares = [node.share for node in nodes[0].children]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0)


def test_a_great_tree_keeps_its_largest_lines():
    root = tree.Branch(tree.CallSite("", "", False))
    for number in range(5_000):
        step = tree.CallSite(f"f{number}", "", False)
        root.below[step] = tree.Branch(step, 1 + number, 1)
        root.ns += 1 + number
    nodes = tree.nodes(root, 100)
    assert len(nodes) == 101
    assert nodes[0].text == "f4999"
    assert nodes[-1].text == "4900 more"
    assert sum(node.share for node in nodes) == pytest.approx(1.0)


def test_the_slowest_cause_comes_first_and_one_with_a_remedy_has_what_it_saves():
    nothing = "", "", ""
    shape = ["shape", 5, 2.0, "f was built again", "Pad x.", "JH050"]
    rows = [["first", 1, 9.0, *nothing], ["unexplained", 1, 8.0, *nothing], shape]
    rows.append(["another program", 1, 7.0, *nothing])  # built again, and has no remedy
    names = ["cause", "builds", "build_s", "sentence", "remedy", "remedy_id"]
    frame = pd.DataFrame(rows, columns=names).assign(function="f", argument="", origin="program")
    made = causes.content(frame)
    data = made.tables[0].data
    assert list(data["cause"]) == ["first", "unexplained", "another program", "shape"]
    assert data["saves_s"].iloc[-1] == 2.0
    assert data["saves_s"].iloc[:-1].isna().all()
    assert made.figures[0].title == "9.0 s of 26 s went into building again"
    eager = pd.DataFrame([["shape", 9, 4.0, *nothing]], columns=names)
    eager = eager.assign(function="add", argument="", origin="jax")
    (figure,) = causes.content(pd.concat([frame, eager], ignore_index=True)).figures
    assert figure.title == (
        "9.0 s of 30 s went into building again, 4.0 s into JAX's functions outside jit"
    )


def test_a_table_says_how_much_of_it_is_not_there(monkeypatch):
    shown = Shown(synthetic.profile())
    frame = pd.DataFrame({"function": ["f"] * 2_000, "build_s": 1.0})
    monkeypatch.setattr(shown, "frame", lambda table: frame)
    made = plain.FUNCTIONS.part(shown)
    assert len(made.tables[0].data) == MOST
    assert made.notes[0].startswith("500 more rows")


def test_a_profile_without_builds_makes_a_page():
    (process,) = synthetic.profile(processes=1).processes
    quiet = dataclasses.replace(process, lines=(process.started,))
    page = render(profile_report(Profile((quiet,))))
    assert "Nothing was traced" in page
    assert "harness profile -- python PROGRAM" in page


@pytest.mark.nightly
def test_the_page_stays_small():
    report = profile_report(synthetic.profile(builds=2_500, hostile=False))
    assert len(render(report).encode()) < 3_000_000
    assert len(table(report, "timeline").data) <= timeline.MOST_BARS
    assert len(table(report, "marks").data) <= timeline.MOST_MARKS
    assert any("drawn as one" in note for note in section(report, "timeline").notes)


def test_the_timeline_is_drawn_as_a_file(hostile_profile, tmp_path):
    written = {path.stem: path.read_text() for path in write_images(hostile_profile, tmp_path)}
    assert {"time", "causes", "timeline"} <= set(written)
    assert written["timeline"].count("<path") > 20
    assert "<script>alert" not in written["timeline"]


def test_report_writes_one_file_and_the_command_beside_the_profile(tmp_path, command):
    size = synthetic.profile().report(tmp_path / "new" / "profile.html")
    assert (tmp_path / "new" / "profile.html").stat().st_size == size
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Choose another place with -o"):
        synthetic.profile().report(tmp_path / "file" / "profile.html")
    folder = synthetic.write(synthetic.profile(), tmp_path / "p")
    assert command("profile", "report", folder, "--figures", tmp_path / "f")[0] == 0
    assert (folder / "profile.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (tmp_path / "f" / "timeline.svg").exists()
