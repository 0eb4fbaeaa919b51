"""What `harness compare` prints in each format, and with which code it ends."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import replace

import msgspec
import pandas as pd
import pytest

from harness.frame.arms import resolve
from harness.frame.load import everything
from harness.frame.pairs import pair
from harness.output import comparison as summary
from harness.output import comparison_markdown as markdown
from harness.records.schema import encode
from harness.records.store import Store, store_path
from harness.stages import registry
from harness.verdicts.compare import judged_pairs
from harness.verdicts.judge import Terms
from tests.frame.trees import COMMIT, ENV, failed
from tests.verdicts.arms_of import OTHER, records, tree

BOTH = (COMMIT, OTHER, "-r")


def add(folder, **fields):
    """Put the records of one more case into a tree."""
    own = records(**fields)
    Store(store_path(folder, "box", own[0].commit, own[0].env)).append(own)


def test_a_table_has_the_worst_first_and_counts_what_is_same(compare, tmp_path):
    folder = tree(tmp_path, factor=1.2, stages=("compile", "trace"), jax="0.11.2")
    file = next((folder / "box" / "records").iterdir())
    with file.open("ab") as handle:
        handle.write(encode(msgspec.structs.replace(records()[0], schema=99)))
    code, out, err = compare(*BOTH, folder, "--stage", "compile")

    assert code == 1
    assert "1 line(s) of another schema version" in err
    assert out.splitlines()[0] in ("`Work` compiles 19 % slower.", "`Work` compiles 20 % slower.")
    assert out.splitlines()[1:3] == [
        "1 slower",
        "A: commit=01234567 · B: commit=ffffffff",
    ]
    assert "From A to B: jax 0.10.2 → 0.11.2, flags equal." in out
    assert "family.Work" in out
    assert "% slower in wall time (threshold 5 %)" in " ".join(out.split())


def test_nothing_slower_ends_with_0_and_nothing_comparable_with_4(compare, tmp_path):
    code, out, _ = compare(*BOTH, tree(tmp_path / "same"), "--stage", "compile")
    assert (code, "Not listed: 1 same" in out, "From A to B" in out) == (0, True, False)
    code, out, err = compare(*BOTH, tree(tmp_path / "other", version="2.b"))
    reason = "nothing is comparable: the workload or the method changed: 1.aaaa → 2.b."
    assert (code, reason in " ".join(err.split())) == (4, True)
    assert "the workload or the method changed: 1.aaaa → 2.b" in out.replace("\n", " ")


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_what_broke_stands_first_and_ends_with_7(compare, tmp_path, form):
    folder = tree(tmp_path)
    for size in (16, 17):
        gone = [failed(n, axes={"size": size}, commit=OTHER) for n in range(8)]
        add(folder, commit=COMMIT, axes={"size": size}, stages=("trace", "compile"))
        Store(store_path(folder, "box", OTHER, gone[0].env)).append(gone)
    code, out, _ = compare(*BOTH, folder, "--format", form)
    assert code == 7
    assert "Work broke." in out.replace("`", "")
    assert ("2 cases broken; " in out) is (form != "json")
    # A case has lost all of its stages, for one reason.
    assert out.count(
        "failed; ValueError: no" if form == "json" else "B failed: ValueError: no"
    ) == (4 if form == "json" else 2)
    assert out.count(" trace, compile ") == (0 if form == "json" else 2)
    code, out, _ = compare(OTHER, COMMIT, "-r", folder, "--format", form)
    assert (code, "2 cases work again" in out or '"works again"' in out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "is no path"),
        ([COMMIT, "--explain", "--format", "json"], "--explain is for reading"),
        ([COMMIT, "--stage", "link"], "No stage is called 'link'"),
        ([COMMIT, "--counts", "--live"], "--counts decides by counts that are stored"),
        ([COMMIT, "--counts", "--explain"], "--counts decides by counts that are stored"),
    ],
)
def test_wrong_usage_ends_with_2(compare, tmp_path, arguments, said):
    code, _, err = compare(*arguments, OTHER, "-r", tree(tmp_path))
    assert (code, said in err) == (2, True)


def test_json_is_strict_and_complete(compare, tmp_path):
    folder = tree(tmp_path, factor=1.2)
    add(folder, n=1, workload="family.Few", commit=COMMIT)
    code, out, _ = compare(*BOTH, folder, "--format", "json")

    def refuse(name):
        raise AssertionError(name)

    document = json.loads(out, parse_constant=refuse)
    slower, few = document["rows"]
    assert (code, document["schema"], document["counts"]["slower"]) == (1, 2, 1)
    assert document["answer"].startswith("`Work` compiles ")
    assert (slower["stage"], slower["size"], slower["evidence"]) == ("compile", 8, "clock")
    assert (slower["clock"], slower["low"] > 1, slower["needs"]) == ("wall", True, "")
    assert (few["ratio"], few["problem"], few["detail"]) == (None, "only in", "A")
    assert document["error_rates"] == {f"box, effort default, {ENV}": None}


HOSTILE = ("<script>alert(1)</script>", "مقياس.عمل", "a|b`c*_x_", "[bold]not[/bold] @someone")


def test_names_are_text_in_every_format(compare, tmp_path):
    for name in HOSTILE:
        add(tmp_path, workload=name, commit=COMMIT)
        add(tmp_path, workload=name, commit=OTHER, factor=1.5)
    arms = (*BOTH, tmp_path, "-s", "[^k]$", "--case", "size=8")
    text = compare(*arms, "--format", "markdown")[1]
    for told in ("&lt;script&gt;", "a\\|b\\`c\\*\\_x\\_", HOSTILE[1]):
        assert told in text
    assert "<script" not in text
    assert "@" not in text
    for form in ("table", "json", "csv"):
        out = compare(*arms, "--format", form)[1]
        assert all(name in out for name in (HOSTILE[1], "<script>", "[bold]not"))
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["workload"] for row in rows} == {*HOSTILE}
    assert {(row["stage"], row["verdict"]) for row in rows} == {("compile", "slower")}


def test_markdown_folds_what_did_not_become_slower_or_faster(compare, tmp_path):
    folder = tree(tmp_path / "r", factor=1.2, jax="0.11.2")
    add(folder, workload="family.Gone", commit=COMMIT)
    output = tmp_path / "deep" / "comment.md"
    code, out, _ = compare(*BOTH, folder, "--format", "markdown", "-o", output)
    text = output.read_text()

    assert (code, out) == (1, "")
    assert text.startswith("**Work compiles ")
    assert "1 slower, 1 incomparable" in text
    assert "From A to B: jax 0.10.2 → 0.11.2, flags equal." in text
    assert "<details><summary>1 incomparable</summary>" in text
    assert text.index("### Slower") < text.index("<details>")
    assert f"<sub>Error rates (box, effort default, {ENV}): unknown" in text


def test_many_rows_have_an_overview_by_stage_and_as_many_rows_as_a_comment_has_room_for(
    compare, tmp_path, monkeypatch
):
    for commit, more in ((COMMIT, 1.0), (OTHER, 1.3)):
        for size in range(50):
            case = records(commit=commit, axes={"size": size}, n=4, stages=("trace", "compile"))
            for one in case:
                taken = one.stages["compile"]
                taken.samples_ns = [(more if size else 1 / more) * ns for ns in taken.samples_ns]
            Store(store_path(tmp_path, "box", commit, case[0].env)).append(case)
    code, out, _ = compare(*BOTH, tmp_path)
    headings, trace, compiled = (re.split(r"  +", line.strip()) for line in out.splitlines()[4:7])

    counted = ["slower", "faster", "same", "unsure"]
    assert code == 1
    assert headings == ["stage", "cases", "mean B / A", "as a whole", *counted]
    assert trace[:2] == ["trace", "50"]
    assert 0.98 < float(trace[2]) < 1.02
    assert compiled[:2] == ["compile", "50"]
    assert 1.26 < float(compiled[2]) < 1.31
    assert re.fullmatch(r"slower \(1\.2[6-9]\d\)", compiled[3])
    assert compiled[4:6] == ["49", "1"]
    assert re.match(r"compile is 2\d % slower in most cases; nothing else changed", out)
    assert "compile as a whole slower; 49 slower, 1 faster, 50 same" in out
    assert "compile as a whole: slower. 29 % slower in most of 50 cases" in out
    assert "Not listed: 29 more slower, 50 same; `--all` lists all." in out
    everything = compare(*BOTH, tmp_path, "--all")[1]
    assert len(everything.splitlines()) > len(out.splitlines()) + 50

    whole = compare(*BOTH, tmp_path, "--format", "markdown")[1]
    assert markdown.CUT not in whole
    assert "same</summary>" not in whole
    assert len(whole) < markdown.MOST_CHARACTERS < 65_536
    monkeypatch.setattr(markdown, "MOST_CHARACTERS", 5_000)
    text = compare(*BOTH, tmp_path, "--format", "markdown")[1]
    assert re.search(
        r"\| compile \| 50 \| 1\.[23]\d+ \| slower \(1\.\d+\) \| 49 \| 1 \| 0 \| 0 \|", text
    )
    assert text.index("| stage |") < text.index("### Slower") < text.index("### Faster")
    assert "cut here, for the length that a comment may have: `--all` lists every row." in text
    assert len(text) < 5_200
    everything = compare(*BOTH, tmp_path, "--format", "markdown", "--all")[1]
    assert ("<summary>50 same</summary>" in everything, markdown.CUT in everything) == (True, False)


def test_arms_in_turns_have_no_error_rates_of_arms_one_after_the_other(tmp_path):
    frame = everything(tree(tmp_path, factor=1.2))
    commits = {COMMIT: COMMIT, OTHER: OTHER}
    a, b = (resolve(text, frame, commits) for text in commits)
    after, turned = (judged_pairs(pair(a, b), terms=Terms(one)) for one in (False, True))
    assert "`harness aa" in summary.footer(after)[0]
    assert summary.footer(turned) == []
    assert summary.legend(after)[0].startswith("A, B: geometric means over processes")
    nothing = judged_pairs(pair(a, replace(b, rows=b.rows.head(0))))
    assert summary.legend(nothing) == ()


def test_an_overview_has_the_geometric_mean_and_skips_what_has_no_ratio(monkeypatch):
    frame = pd.DataFrame(
        {
            "stage": ["execute", "compile", "compile", "compile"],
            "ratio": [1.0, 2.0, 0.5, math.nan],
            "verdict": ["same", "slower", "faster", "incomparable"],
            "unit": "seconds",
            "stage_verdict": ["", "same", "same", "same"],
            "stage_ratio": [math.nan, 1.05, 1.05, 1.05],
        }
    )
    assert summary.overview(frame).empty
    monkeypatch.setattr(summary, "FEW", 0)
    assert summary.overview(frame).to_numpy().tolist() == [
        ["compile", "2", "1.000", "same (1.050)", "1", "1", "0", "0"],
        ["execute", "1", "1.000", "", "0", "0", "1", "0"],
    ]
    assert summary.overview(frame.head(0)).empty


PROJECT = "[tool.harness.thresholds]\n"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (f"{PROJECT}compile = 0.25", 0, "1 same"),
        (f"{PROJECT}compile = 0.1", 1, "(threshold 10 %)"),
        (f"{PROJECT}trace = 0.5", 1, "(threshold 5 %)"),
        ("compile = 0.25", 1, ""),  # another table, of somebody else
        (f"{PROJECT}compil = 0.1", 2, "is no stage. Did you mean 'compile'?"),
        (f"{PROJECT}compile = 10", 2, "compile is 10; expected the smallest change"),
        (f'{PROJECT}compile = "10 %"', 2, "compile is '10 %'; expected"),
        ("[tool.harness]\nthresholds = 0.1", 2, "thresholds is 0.1; expected a table"),
        ("[tool.harness.threshold]", 2, "is not known. Did you mean 'thresholds'?"),
        ("[tool.harness.thresholds", 2, "pyproject.toml cannot be read"),
    ],
)
def test_the_project_says_what_counts(compare, tmp_path, monkeypatch, text, code, said):
    monkeypatch.setattr(registry, "thresholds", registry.thresholds | {})
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(text)
    found, out, err = compare(*BOTH, tree(tmp_path / "t", factor=1.2), "--stage", "compile")
    assert (found, said in " ".join(f"{out} {err}".split())) == (code, True)


def test_markdown_warns_of_unlike_machines_before_any_number(compare, tmp_path):
    add(tmp_path, commit=COMMIT, machine="box")
    add(tmp_path, commit=OTHER, machine="rig")
    text = compare("machine=box", "machine=rig", "-r", tmp_path, "--format", "markdown")[1]
    second = text.split("\n\n")[1]
    assert second.startswith("> **Warning:** ")
    assert "box → rig" in second
