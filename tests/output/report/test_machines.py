"""The report on several machines: side by side, told apart, and never compared unasked."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from harness.output.report.page import render
from tests.output.report.pages import answers, embedded, reported, section, table, without_scripts
from tests.output.report.synthetic import frame

HOSTS = {
    "box": {"cpu": "Small", "cores": 2, "ram_bytes": 8 * 2**30},
    "rig": {"cpu": "Large", "cores": 64, "ram_bytes": 256 * 2**30},
}


def measured(machine, name="", factor=1.0, behind="0h", workloads=("a.A", "b.B"), **options):
    """Return what a machine measured, under its own name or another, by a clock that is behind."""
    made = frame(list(workloads), **options)
    for column in ("value", "low", "high", "calibrated"):
        made[column] *= factor
    about = json.dumps({"device": "cpu", "host": HOSTS[machine]})
    return made.assign(
        machine=name or machine,
        environment=about,
        started_at=made["started_at"] - pd.Timedelta(behind),
    )


def together(*parts):
    whole = pd.concat(parts, ignore_index=True)
    whole.attrs["problems"] = {}
    return reported(whole)


@pytest.fixture(scope="module")
def two():
    slower = measured("box"), measured("rig", factor=0.5, workloads=["a.A", "c.C"], behind="1h")
    return together(*slower)


def test_cases_of_two_machines_stand_side_by_side_and_are_labelled(two):
    shown = table(two, "machines")
    assert set(shown.data["workload"]) == {"a.A"}
    assert shown.data["ratio"].round(6).eq(2).all()
    labels = [column.label for column in shown.columns if not column.hidden]
    assert labels[3:6] == ["box", "rig", "slowest / fastest"]
    assert shown.caption.startswith("Across unlike machines: ")
    assert section(two, "machines").notes == (
        "box → rig: processor Small → Large, cores 2 → 64, memory 8.0 → 256.0 GiB.",
    )


def test_every_case_says_its_machine_and_figures_show_one_at_a_time(two):
    cases = table(two, "cases")
    assert {"on box", "on rig"} == {text.rpartition(", ")[2] for text in cases.data["case"]}
    assert [c.hidden for c in cases.columns if c.name == "machine"] == [False]
    picks = {figure.name: figure.picks for part in two.sections for figure in part.figures}
    for name in ("stages", "scaling", "facts"):
        assert picks[name][0] == ("machine", "machine", "box")
    assert two.title == "Benchmarks of box, rig"


@pytest.mark.nightly
def test_the_page_offers_the_machines_and_draws_both(two):
    page = render(two)
    markup = without_scripts(page)
    assert '<option value="box">' in markup
    assert '<option value="rig">' in markup
    points = embedded(page)["tables"]["machine_points"]["values"]
    assert set(points["machine"]["d"]) == {"box", "rig"}
    assert "date" not in json.dumps(points["case"]["d"])


def test_machines_are_not_compared_with_each_other(two):
    assert section(two, "verdicts").missing


def test_one_machine_has_nothing_beside_it():
    report = together(measured("box"))
    assert section(report, "machines") is None
    assert section(report, "stages").figures[0].picks == ()
    apart = together(measured("box"), measured("rig", workloads=["c.C"]))
    assert section(apart, "machines") is None


def test_a_clock_that_is_behind_hides_no_night_and_no_machine():
    report = together(measured("box", nights=3), measured("rig", nights=3, behind="400h"))
    notes = section(report, "verdicts").notes
    assert notes == tuple(
        f"{name}: 2026-01-03 00000000 (existing-py3.11-jax0.10.2) against 2026-01-02 00000000 "
        "(existing-py3.11-jax0.10.2)."
        for name in ("box", "rig")
    )


@pytest.mark.nightly
def test_commits_of_a_night_with_a_wrong_clock_keep_their_order():
    late = measured("box", nights=3)
    late.loc[late["night"] == "2026-01-03", "started_at"] -= pd.Timedelta("100h")
    report = together(late)
    assert section(report, "verdicts").notes[0].startswith("box: 2026-01-03 00000000")
    assert table(report, "origins").data["label"].tolist()[0][:10] == "2026-01-03"
    assert set(table(report, "cases").data["commit"]) == {"00000000"}


def test_a_name_that_unlike_machines_share_is_doubtful():
    report = together(measured("box"), measured("rig", name="box").assign(env="other"))
    assert answers(report)["What cannot be trusted"][0].startswith(
        "Unlike machines share the name box (processor Small → Large"
    )
    changed = table(report, "verdicts").data
    assert set(changed["verdict"]) == {"incomparable"}
