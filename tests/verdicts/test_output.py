"""What `harness compare` prints in each format, and with which code it ends."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import msgspec
import pandas as pd
import pytest

from harness.records.schema import encode
from harness.records.store import Store, store_path
from harness.stages import registry
from harness.verdicts import markdown, summary
from tests.frame.trees import COMMIT, ENV, failed
from tests.verdicts.arms_of import OTHER, records, tree

BOTH = (COMMIT, OTHER, "-r")


def add(folder, **fields):
    """Put the records of one more case into a tree."""
    own = records(**fields)
    Store(store_path(folder, "box", own[0].commit, own[0].env)).append(own)


def test_a_table_has_the_worst_first_and_counts_what_is_same(compare, tmp_path):
    folder = tree(tmp_path, factor=1.2, stages=("compile", "trace"))
    code, out, _ = compare(*BOTH, folder, "--stage", "compile")

    assert code == 1
    assert out.splitlines()[:2] == ["1 slower", "A: commit=01234567 · B: commit=ffffffff"]
    assert "family.Work" in out
    assert "% slower (5 % counts)" in " ".join(out.split())
    assert f"Error rates (box, effort default, {ENV}): unknown; `harness aa --power`" in " ".join(
        out.split()
    )


def test_nothing_slower_ends_with_0_and_nothing_comparable_with_4(compare, tmp_path):
    code, out, _ = compare(*BOTH, tree(tmp_path / "same"), "--stage", "compile")
    assert (code, "Not listed: 1 same" in out) == (0, True)
    code, out, err = compare(*BOTH, tree(tmp_path / "other", version="2.b"))
    assert (code, "nothing is comparable" in err) == (4, True)
    assert "the workload or the method changed: 1.aaaa → 2.b" in out.replace("\n", " ")


@pytest.mark.parametrize(
    ("factor", "answer", "verdict"), [(1.2, "1 slower", "slower"), (1.0, "1 same", "same")]
)
def test_the_answer_is_drawn_as_a_card(compare, tmp_path, factor, answer, verdict):
    pytest.importorskip("vl_convert")
    card, folder = tmp_path / "card.svg", tree(tmp_path / "tree", factor=factor)
    _, _, err = compare(*BOTH, folder, "--stage", "compile", "--figure", card)
    assert f"{card} drawn" in err
    drawn = card.read_text()
    for text in (answer, "A: commit=01234567 · B: commit=ffffffff", "· compile", verdict):
        assert text in drawn
    # Without a ratio there is nothing to draw.
    _, _, err = compare(*BOTH, tree(tmp_path / "other", version="2.b"), "--figure", "no.svg")
    assert "drawn" not in err


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_what_broke_stands_first_and_ends_with_7(compare, tmp_path, form):
    folder = tree(tmp_path)
    gone = [failed(n, axes={"size": 16}, commit=OTHER) for n in range(8)]
    add(folder, commit=COMMIT, axes={"size": 16})
    Store(store_path(folder, "box", OTHER, gone[0].env)).append(gone)
    code, out, _ = compare(*BOTH, folder, "--format", form)

    assert code == 7
    assert "1 case broken; " in out
    assert "B failed: ValueError: no" in out
    # The other way round nothing broke.
    assert compare(OTHER, COMMIT, "-r", folder)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", OTHER], "is no path"),
        ([COMMIT, OTHER, "--explain", "--format", "json"], "--explain is for reading"),
        ([COMMIT, OTHER, "--stage", "link"], "No stage is called 'link'"),
    ],
)
def test_wrong_usage_ends_with_2(compare, tmp_path, arguments, said):
    code, _, err = compare(*arguments, "-r", tree(tmp_path))

    assert (code, said in err) == (2, True)


def test_json_is_strict_and_complete(compare, tmp_path):
    folder = tree(tmp_path, factor=1.2)
    add(folder, n=1, workload="family.Few", commit=COMMIT)
    code, out, _ = compare(*BOTH, folder, "--format", "json")

    def refuse(name):
        raise AssertionError(name)

    document = json.loads(out, parse_constant=refuse)
    slower, few = document["rows"]
    assert (code, document["schema"], document["counts"]["slower"]) == (1, 1, 1)
    assert (slower["stage"], slower["size"], slower["cause"]) == ("compile", 8, "")
    assert (few["ratio"], few["reason"]) == (None, "only in A")
    assert document["error_rates"] == {f"box, effort default, {ENV}": None}


def test_csv_has_a_line_per_row(compare, tmp_path):
    out = compare(*BOTH, tree(tmp_path), "--format", "csv")[1]
    rows = list(csv.DictReader(io.StringIO(out)))

    assert [(row["stage"], row["verdict"]) for row in rows] == [("compile", "same")]


HOSTILE = ("<script>alert(1)</script>", "مقياس.عمل", "a|b`c*_x_", "[bold]not[/bold] @someone")


def test_names_are_text_in_every_format(compare, tmp_path):
    one, other = tmp_path / "a", tmp_path / "b"
    for folder, factor in ((one, 1.0), (other, 1.5)):
        for name in HOSTILE:
            tree(folder, workload=name, factor=factor)
    arms = (one, other, "-s", "[^k]$", "--case", "size=8")

    text = compare(*arms, "--format", "markdown")[1]
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "a\\|b\\`c\\*\\_x\\_" in text
    assert "@" not in text
    assert HOSTILE[1] in text
    for form in ("table", "json", "csv"):
        out = compare(*arms, "--format", form)[1]
        assert all(name in out for name in (HOSTILE[1], "<script>", "[bold]not"))


def test_markdown_folds_what_did_not_become_slower_or_faster(compare, tmp_path):
    folder = tree(tmp_path / "r", factor=1.2)
    add(folder, workload="family.Gone", commit=COMMIT)
    output = tmp_path / "deep" / "comment.md"
    code, out, _ = compare(*BOTH, folder, "--format", "markdown", "-o", output)
    text = output.read_text()

    assert (code, out) == (1, "")
    assert text.startswith("**1 slower, 1 incomparable**")
    assert "<details><summary>1 incomparable</summary>" in text
    assert text.index("### Slower") < text.index("<details>")
    assert f"<sub>Error rates (box, effort default, {ENV}): unknown" in text


def test_markdown_fits_into_a_comment_unless_every_row_is_wanted(compare, tmp_path):
    about = {"n": 1, "stages": ("compile", "trace"), "workload": "family." + "LongName" * 8}
    for commit in (COMMIT, OTHER):
        cases = [records(axes={"size": n}, commit=commit, **about)[0] for n in range(400)]
        Store(store_path(tmp_path, "box", commit, cases[0].env)).append(cases)

    out = compare(*BOTH, tmp_path, "--format", "markdown")[1]
    assert len(out) < 65_536
    assert "<summary>800 unsure</summary>" in out
    assert "cut here, for the length that a comment may have: `--all` lists every row." in out
    out = compare(*BOTH, tmp_path, "--format", "markdown", "--all")[1]
    assert len(out) > 65_536
    assert "cut here" not in out


def test_records_of_another_schema_version_are_left_out_and_said(compare, tmp_path):
    folder = tree(tmp_path)
    file = next((folder / "box" / "records").iterdir())
    with file.open("ab") as handle:
        handle.write(encode(msgspec.structs.replace(records()[0], schema=99)))
    code, _, err = compare(*BOTH, folder)

    assert code == 0
    assert "1 line(s) of another schema version" in err


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_what_differs_between_the_environments_stands_above(compare, tmp_path, form):
    out = compare(*BOTH, tree(tmp_path / "other", jax="0.11.2"), "--format", form)[1]
    assert "From A to B: jax 0.10.2 → 0.11.2, flags equal." in out
    assert "From A to B" not in compare(*BOTH, tree(tmp_path / "same"))[1]


def many(folder, cases, change):
    """Return a tree of cases of two stages: `compile` changes as a function of size says."""
    for commit in (COMMIT, OTHER):
        for size in range(cases):
            case = records(commit=commit, axes={"size": size}, stages=("trace", "compile"))
            for one in case if commit == OTHER else ():
                taken = one.stages["compile"]
                taken.samples_ns = [change(size) * ns for ns in taken.samples_ns]
            Store(store_path(folder, "box", commit, case[0].env)).append(case)
    return folder


def test_many_rows_begin_with_an_overview_by_stage(compare, tmp_path, monkeypatch):
    folder = many(tmp_path, 50, lambda size: 1.3)
    code, out, _ = compare(*BOTH, folder)
    headings, trace, compiled = (re.split(r"  +", line.strip()) for line in out.splitlines()[3:6])

    counted = ["slower", "faster", "same", "unsure"]
    assert code == 1
    assert headings == ["stage", "cases", "mean B / A", "as a whole", *counted]
    assert trace[:2] == ["trace", "50"]
    assert 0.98 < float(trace[2]) < 1.02
    assert compiled[:2] == ["compile", "50"]
    assert 1.28 < float(compiled[2]) < 1.32
    assert compiled[3:6] == ["slower", "50", "0"]
    assert out.startswith("compile as a whole slower; 50 slower, 50 same")
    assert "compile as a whole: slower. 30 % slower in most of 50 cases" in out
    assert "Not listed: 30 more slower, 50 same; `--all` lists all." in out
    everything = compare(*BOTH, folder, "--all")[1]
    assert len(everything.splitlines()) > len(out.splitlines()) + 50

    monkeypatch.setattr(markdown, "MOST_CHARACTERS", 5_000)
    text = compare(*BOTH, folder, "--format", "markdown")[1]
    assert re.search(r"\| compile \| 50 \| 1\.[23]\d+ \| slower \| 50 \| 0 \| 0 \| 0 \|", text)
    assert text.index("| stage |") < text.index("### Slower")
    assert markdown.CUT in text
    assert len(text) < 5_100


def test_an_overview_has_the_geometric_mean_and_skips_what_has_no_ratio(monkeypatch):
    frame = pd.DataFrame(
        {
            "stage": ["execute", "compile", "compile", "compile"],
            "ratio": [1.0, 2.0, 0.5, math.nan],
            "verdict": ["same", "slower", "faster", "incomparable"],
            "stage_verdict": ["", "same", "same", "same"],
        }
    )
    assert summary.overview(frame).empty
    monkeypatch.setattr(summary, "FEW", 0)
    assert summary.overview(frame).to_numpy().tolist() == [
        ["compile", "2", "1.000", "same", "1", "1", "0", "0"],
        ["execute", "1", "1.000", "", "0", "0", "1", "0"],
    ]
    assert summary.overview(frame.head(0)).empty


def test_a_comment_has_room_for_all_of_its_tables_together(compare, tmp_path, monkeypatch):
    folder = many(tmp_path, 40, lambda size: 2.0 if size % 2 else 0.5)
    monkeypatch.setattr(markdown, "MOST_CHARACTERS", 5_000)
    text = compare(*BOTH, folder, "--format", "markdown")[1]
    assert "### Slower" in text
    assert "### Faster" in text
    assert len(text) < 5_200


def project(folder, monkeypatch, text):
    """Be in a project whose pyproject.toml has a text."""
    monkeypatch.setattr(registry, "thresholds", registry.thresholds | {})
    monkeypatch.chdir(folder)
    (folder / "pyproject.toml").write_text(text)


@pytest.mark.parametrize(
    ("threshold", "code", "reason"),
    [
        ("compile = 0.25", 0, "1 same"),
        ("compile = 0.1", 1, "(10 % counts)"),
        ("trace = 0.5", 1, "(5 % counts)"),
    ],
)
def test_the_project_says_what_counts(compare, tmp_path, monkeypatch, threshold, code, reason):
    project(tmp_path, monkeypatch, f"[tool.harness.thresholds]\n{threshold}\n")
    found, out, _ = compare(*BOTH, tree(tmp_path / "t", factor=1.2), "--stage", "compile")
    assert (found, reason in " ".join(out.split())) == (code, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("compile = 0.1", None),  # another table, of somebody else
        ("[tool.harness.thresholds]\ncompil = 0.1", "is no stage. Did you mean 'compile'?"),
        ("[tool.harness.thresholds]\ncompile = 10", "compile is 10; expected the smallest change"),
        ('[tool.harness.thresholds]\ncompile = "10 %"', "compile is '10 %'; expected"),
        ("[tool.harness]\nthresholds = 0.1", "thresholds is 0.1; expected a table"),
        ("[tool.harness.threshold]\ncompile = 0.1", "is not known. Did you mean 'thresholds'?"),
        ("[tool.harness.budget.total]\nmax_compiles = 3", None),
        ("[tool.harness.thresholds", "pyproject.toml cannot be read"),
    ],
)
def test_wrong_thresholds_are_told(compare, tmp_path, monkeypatch, text, said):
    project(tmp_path, monkeypatch, text)
    code, _, err = compare(*BOTH, tree(tmp_path / "t"), "--stage", "compile")
    assert (code, said is None or said in err) == (2 if said else 0, True)
