"""What a summary and an issue say, and what they do not let through."""

from __future__ import annotations

import json

from harness.nightly import summary
from harness.nightly.state import Environment, Nights, StepOutcome
from harness.verdicts import judge
from harness.verdicts.history import change_points
from tests.nightly.test_state import night, verdicts

ROW = {
    **dict.fromkeys(judge.COLUMNS, ""),
    **{"machine": "m", "workload": "tiny.Scale", "version": "1", "size": 8, "other": None},
    **{"target": "cpu", "transform": "forward", "precision": "", "scenario": "off"},
    **{"stage": "compile", "a_s": 0.01, "b_s": 0.02, "ratio": 2.0, "low": 1.8, "high": 2.2},
    **{"verdict": "slower", "reason": "p < 0.01", "cause": "program", "n_a": 8, "n_b": 8},
}
POINT = {
    **dict.fromkeys(change_points.COLUMNS, ""),
    **{"machine": "m", "workload": "tiny.Scale", "version": "1", "size": 8, "other": None},
    **{"target": "cpu", "transform": "forward", "precision": "", "scenario": "off"},
    **{"stage": "compile", "change": "slower", "state": "confirmed", "series": 3, "position": 5},
    **{"before_s": 0.01, "after_s": 0.02, "ratio": 2.0, "same_program": False},
    **{"commit_before": "a" * 40, "commit_after": "b" * 40, "facts": "fusions 2"},
}


def kept(tmp_path, change=None, **fields):
    """A night with verdicts in its folder: its nights, and the night."""
    nights = Nights(tmp_path, "m")
    now = night("now", verdicts=[verdicts(slower=1, same=4)], code=1, **fields)
    now.verdicts[0].difference = "jax 0.10.2 → 0.11.2, flags equal"
    nights.save(now)
    nights.own("now").mkdir()
    same = {**ROW, "verdict": "same"}
    table = [{**ROW, **(change or {})}, same]
    (nights.own("now") / "v.json5").write_text(json.dumps(table))
    return nights, now


def test_an_issue_has_the_table_and_the_environment_difference(tmp_path):
    nights, now = kept(tmp_path)
    text = summary.issue(now, nights)
    assert "jax 0.10.2 → 0.11.2, flags equal" in text
    assert "1 slower, 4 same" in text or "4 same, 1 slower" in text
    (line,) = [line for line in text.splitlines() if "tiny.Scale" in line]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[0] == "tiny.Scale size=8"
    assert cells[1:7] == ["compile", "10 ms", "20 ms", "2.000", "1.800 to 2.200", "slower"]
    assert cells[7] == "program: p &lt; 0.01"


def test_stages_as_a_whole_and_what_broke_are_told(tmp_path):
    nights, now = kept(tmp_path, {"verdict": "broken", "reason": "B failed: ValueError: no"})
    now.verdicts[0].stages = ["compile as a whole: slower. 1.3 × slower."]
    now.verdicts[0].inside = ["tiny.Scale size=8: +16 %: +16 % fusion (priority-fusion)"]
    text = summary.render(now, nights)
    assert "- tiny.Scale size=8: +16 %: +16 % fusion (priority-fusion)" in text
    assert "- **compile as a whole: slower. 1.3 × slower.**" in text
    assert "| broken | program: B failed: ValueError: no |" in text


def test_a_changed_program_is_told_though_nothing_is_slower(tmp_path):
    nights, now = kept(tmp_path)
    assert "nother program" not in summary.render(now, nights)
    now.verdicts[0].programs = [f"tiny.Scale size={n}: +47 HLO instructions" for n in range(60)]
    now.exit_code = 0
    text = summary.render(now, nights)

    assert "**fine, another program in 60 cases** (exit code 0)" in text
    assert text.count("HLO instructions\n") == summary.MOST
    assert "10 more are in `v.json5`." in text


def test_names_from_users_stay_text(tmp_path):
    hostile = "<script>|[x](http://example.com)`@all\n# قياس"
    nights, now = kept(tmp_path, {"workload": hostile, "reason": hostile})
    text = summary.render(now, nights)
    for mark in ("<script>", "x](", "@all", "`@", "\n# ق"):
        assert mark not in text
    assert "قياس" in text


def test_change_points_of_this_machine_are_listed_newest_first(tmp_path):
    nights, now = kept(tmp_path)
    points = [
        {**POINT, "night_after": "2026-11-01", "started_at": "2026-11-01T00:00:00"},
        {**POINT, "night_after": "2026-11-09", "started_at": "2026-11-09", "state": "new"},
        {**POINT, "night_after": "2026-11-10", "machine": "another"},
    ]
    (nights.own("now") / "history.json5").write_text(json.dumps(points))
    text = summary.render(now, nights)
    (line,) = [line for line in text.splitlines() if "2026-11-01" in line]
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        *("2026-11-01", "slower", "tiny.Scale size=8", "compile", "10 ms", "20 ms", "2.000"),
        *("aaaaaaaa..bbbbbbbb", "", "fusions 2"),
    ]
    assert "| slower, new |" in text
    assert 0 < text.index("2026-11-09") < text.index("2026-11-01")
    assert "2026-11-10" not in text


def test_a_noisy_night_is_no_issue_and_an_environment_that_could_not_be_made_a_failure(tmp_path):
    steps = {
        "probe": StepOutcome("noisy", "3 of 5 rows"),
        "environment newest": StepOutcome("failed", "no matching distribution"),
    }
    nights, now = kept(tmp_path, steps=steps)
    now.environments.append(Environment("newest"))
    assert summary.issue(now, nights) == ""
    text = summary.render(now, nights)
    for said in ("**Noisy**", "3 of 5 rows", "| newest | not made |"):
        assert said in text
    assert "- environment newest: no matching distribution" in text
