"""The page as text: what is in it, and what must never be."""

from __future__ import annotations

import base64
import gzip
import json
import re
from importlib import resources

import numpy as np
import pandas as pd
import pytest

from harness.errors import UsageError
from harness.frame.load import everything
from harness.output.report import files
from harness.output.report.content import Column, Table
from harness.output.report.page import encode, packed, render, rounded, write_images
from harness.output.report.sweep import error_rates
from tests.output.report.pages import RESULTS, answers, embedded, reported, table, without_scripts
from tests.output.report.synthetic import cached, frame
from tests.verdicts.test_error_rates import store
from tests.verdicts.test_rules import rates_of


@pytest.fixture(scope="module")
def committed():
    return everything(RESULTS)


@pytest.mark.nightly
def test_committed_results_make_a_small_page(committed, comparisons):
    report = reported(committed, comparisons)
    assert [text.split(" (")[0] for text, _ in report.views] == [
        *("Newest", "Fastest growing", "Slower", "Undecided"),
    ]
    page = render(report)
    assert len(page.encode()) < 2_000_000
    for name in ("stages", "scaling", "ratios", "roofline", "facts", "history"):
        assert f'data-figure="{name}"' in page
    assert 'data-figure="verdicts"' in page


@pytest.mark.nightly
def test_one_commit_has_neither_history_nor_verdicts_and_is_told_how_to_get_them(
    committed, comparisons
):
    page = render(reported(committed[committed["jax"] == "0.12.0.1"], comparisons))
    for name in ("history", "verdicts"):
        assert f'data-figure="{name}"' not in page
    assert 'harness run <span class="option">--night</span> NAME' in page


@pytest.mark.nightly
def test_a_night_more_adds_less_than_3_bytes_for_a_stage_of_a_case():
    week, year = (frame(["a.A", "b.B", "c.C"], nights=nights) for nights in (7, 40))
    more = len(render(reported(year))) - len(render(reported(week)))
    assert 0 < more < 3 * (len(year) - len(week))


@pytest.mark.nightly
def test_the_same_results_make_the_same_page_in_every_process(hostile_report):
    (drawn,) = (figure.drawn for figure in hostile_report.figures if "scenario" in figure.drawn)
    assert drawn["scenario"] == ("off", "warm"), "a set has another order in each process"


@pytest.mark.parametrize("name", ["hostile_page", "hostile_profile_page"])
def test_nothing_is_loaded_from_elsewhere(request, name):
    page = request.getfixturevalue(name)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert policy.startswith("default-src &#39;none&#39;")
    assert "unsafe-eval" not in policy
    assert "http" not in policy
    markup = without_scripts(page)
    assert not re.search(r"""(src|href|action)\s*=\s*["']?(https?:)?//""", markup)
    assert not re.search(r"@import|url\(", markup)
    assert not re.search(r"""<[^>]*\son\w+\s*=\s*["']""", markup)


def test_the_data_of_a_page_can_close_nothing():
    data = {"a": "</script><!-- & \u2028", "b": "ضرب"}
    text = packed(data)
    assert re.fullmatch("[A-Za-z0-9+/]+=*", text)
    assert json.loads(gzip.decompress(base64.b64decode(text))) == data
    assert packed(data) == text


def test_a_table_keeps_four_digits_and_says_what_is_unknown():
    data = pd.DataFrame({"name": ["a", "b", "a"], "time": [1.23456, np.nan, np.inf]})
    made = Table("t", "c", (Column("name", "n"), Column("time", "t", "seconds")), data)
    assert encode(made)["values"] == {
        "name": {"i": [0, 1, 0], "d": ["a", "b"]},
        "time": [1.235, None, None],
    }
    assert rounded(123456.0) == 123500


def test_a_changed_level_is_in_the_history_and_in_the_summary():
    report = reported(frame(["a.A", "b.B"], nights=8))
    changes = table(report, "changes").data
    assert set(changes["workload"]) == {"a.A"}
    assert set(changes["stage"]) == {"compile"}
    assert any("change points" in line for line in answers(report)["What changed"])


def test_a_slower_newest_night_is_named_at_the_top():
    report = reported(frame(["a.A", "b.B"], nights=2))
    assert any("compile of a.A" in line for line in answers(report)["What changed"])


def test_a_quick_look_afterwards_hides_no_verdict():
    nights, quick = frame(["a.A", "b.B"], nights=2), frame(["c.C"]).assign(effort="quick")
    quick = quick.assign(commit_date=nights["commit_date"].max(), night="2026-01-03")
    quick = quick.assign(started_at=nights["started_at"].max() + pd.Timedelta("1h"))
    report = reported(pd.concat([nights, quick], ignore_index=True))
    assert any("compile of a.A" in line for line in answers(report)["What changed"])


def test_what_is_not_ok_is_said_with_its_reason():
    broken = frame(["a.A"])
    broken.loc[0, ["status", "reason", "value"]] = ["refused", "2 compilations", np.nan]
    broken.loc[1, ["status", "reason", "value"]] = ["failed", "ValueError: no", np.nan]
    broken.attrs["problems"] = {"torn": 3}
    report = reported(broken)
    doubts = " ".join(answers(report)["What cannot be trusted"])
    assert "refused: 1" in doubts
    assert "failed: 1" in doubts
    assert "3 torn by a crash" in doubts
    page = embedded(render(report))
    assert "2 compilations" in page["tables"]["reasons"]["values"]["reason"]["d"]


def test_what_the_instruments_skip_is_no_news():
    skipped = frame(["a.A", "reference"]).assign(status="skipped", reason="compiled for, not run")
    report = reported(skipped)
    assert set(table(report, "reasons").data["workload"]) == {"a.A"}


def test_what_takes_longest_is_not_named_twice():
    both = pd.concat([frame(["a.A"]), cached("a.A")], ignore_index=True)
    lines = answers(reported(both))["What takes longest"]
    assert not any("scenario=cold" in line for line in lines)


def test_the_rates_are_those_of_the_effort_that_was_measured(tmp_path):
    measured = frame(["a.A"]).assign(machine="box")
    for effort in ("default", "thorough"):
        store(tmp_path, effort, rates_of([], effort=effort))
        (rates,) = error_rates(tmp_path, measured.assign(effort=effort))
        assert rates.effort == effort
    assert error_rates(tmp_path, measured.assign(machine="other")) == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    "odd",
    [
        frame(["a.A"]).assign(value=np.nan, status="failed", reason="no"),
        frame(["a.A"], sizes=[8], n=1).assign(low=np.nan, high=np.nan),
        frame(["a.A"], nights=3).assign(started_at=pd.NaT),
        frame(["a.A"], nights=2).assign(environment=None, fingerprint=""),
        frame(["a.A"]).rename(columns={"size": "case"}),
        cached("a.A"),
        frame(["a.A"]).iloc[:0],
        frame(["process"], stages=["import"]),
    ],
    ids=["failed", "one", "no clock", "bare", "axis case", "cache", "empty", "instruments"],
)
def test_odd_frames_still_make_a_page(odd):
    page = render(reported(odd))
    assert embedded(page)["figures"] is not None


@pytest.mark.nightly
def test_figures_are_drawn_as_files_by_the_same_specifications(hostile_report, tmp_path):
    written = write_images(hostile_report, tmp_path)
    assert {path.stem for path in written} == {
        *("stages", "verdicts", "samples", "history", "scaling", "cache", "ratios", "roofline"),
        "facts",
    }
    for path in written:
        text = path.read_text()
        assert text.startswith("<svg")
        assert "currentColor" not in text
        assert "<script>alert" not in text
        assert text.count("<path") > 5, path


def test_asvs_page_gets_one_link_however_often(tmp_path):
    with pytest.raises(UsageError, match="asv publish"):
        files.check_asv(tmp_path)
    page = tmp_path / "index.html"
    page.write_text('<ul><li id="nav-li-graphdisplay">x</li></ul><body></body>')
    files.check_asv(tmp_path)
    assert files.link_asv(tmp_path)
    assert not files.link_asv(tmp_path)
    assert page.read_text().count("report.html") == 1
    assert page.read_text().index("report.html") < page.read_text().index("graphdisplay")


def test_asvs_own_page_has_the_place_for_the_link(tmp_path):
    page = tmp_path / "index.html"
    page.write_bytes((resources.files("asv") / "www" / "index.html").read_bytes())
    assert files.link_asv(tmp_path)
    assert page.read_text().index("report.html") < page.read_text().index("</nav>")


def test_an_address_that_runs_a_script_is_refused():
    assert files.asv_links("../html") == [("asv’s pages", "../html")]
    with pytest.raises(UsageError, match="expected a path"):
        files.asv_links("javascript:alert(1)")
