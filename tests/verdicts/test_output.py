"""What `harness compare` prints, and with which code it ends."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys

import msgspec
import pandas as pd
import pytest

from harness import cli
from harness.errors import HarnessWarning
from harness.records.schema import encode
from harness.records.store import Store, store_path
from harness.verdicts import error_rates as stored_rates
from harness.verdicts import markdown, summary
from harness.verdicts.error_rates import Power, Rate
from tests.frame.trees import COMMIT
from tests.verdicts.arms_of import OTHER, records, tree
from tests.verdicts.test_rules import rates_of


@pytest.fixture
def compare(monkeypatch, capsys):
    """Run `harness compare`; return its exit code, output and errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["harness", "compare", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out = capsys.readouterr()
        return ended.value.code or 0, out.out, out.err

    return run


def test_a_table_has_the_worst_first_and_counts_what_is_same(compare, tmp_path):
    folder = tree(tmp_path, factor=1.2, stages=("compile", "trace"))
    code, out, _ = compare(COMMIT, OTHER, "-r", folder, "--stage", "compile")

    assert code == 1
    assert out.splitlines()[0] == "A: commit=01234567 · B: commit=ffffffff"
    assert "family.Work" in out
    assert "% slower (5 % counts)" in " ".join(out.split())
    assert "Error rates of box: unknown; `harness aa` measures them." in out


def test_nothing_slower_ends_with_0_and_nothing_comparable_with_4(compare, tmp_path):
    same = tree(tmp_path / "same")
    other = tree(tmp_path / "other", version="2.b")

    code, out, _ = compare(COMMIT, OTHER, "-r", same, "--stage", "compile")
    assert (code, "Not listed: 1 same" in out) == (0, True)
    code, out, err = compare(COMMIT, OTHER, "-r", other)
    assert (code, "nothing is comparable" in err) == (4, True)
    assert "the workload or the method changed: 1.aaaa → 2.b" in out.replace("\n", " ")


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
    for one in records(n=1, workload="family.Few", commit=COMMIT):
        Store(store_path(folder, "box", COMMIT, one.env)).append([one])
    code, out, _ = compare(COMMIT, OTHER, "-r", folder, "--format", "json")

    def refuse(name):
        raise AssertionError(name)

    found = json.loads(out, parse_constant=refuse)
    assert code == 1
    assert found["counts"]["slower"] == 1
    assert found["schema"] == 1
    assert found["rows"][0]["stage"] == "compile"
    assert found["rows"][0]["size"] == 8
    assert found["rows"][0]["cause"] == ""
    assert found["rows"][1]["ratio"] is None
    assert found["rows"][1]["reason"] == "only in A"
    assert found["error_rates"] == {"box": None}


def test_csv_has_a_line_per_row(compare, tmp_path):
    _, out, _ = compare(COMMIT, OTHER, "-r", tree(tmp_path), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))

    assert [(row["stage"], row["verdict"]) for row in rows] == [("compile", "same")]


HOSTILE = ("<script>alert(1)</script>", "مقياس.عمل", "a|b`c*_x_", "[bold]not[/bold] @someone")


def test_names_are_text_in_every_format(compare, tmp_path):
    one, other = tmp_path / "a", tmp_path / "b"
    for folder, factor in ((one, 1.0), (other, 1.5)):
        for name in HOSTILE:
            tree(folder, workload=name, factor=factor)
    arms = (one, other, "-s", "[^k]$", "--case", "size=8")

    _, markdown, _ = compare(*arms, "--format", "markdown")
    assert "<script" not in markdown
    assert "&lt;script&gt;" in markdown
    assert "a\\|b\\`c\\*\\_x\\_" in markdown
    assert "@" not in markdown
    assert "مقياس.عمل" in markdown
    for form in ("table", "json", "csv"):
        _, out, _ = compare(*arms, "--format", form)
        assert all(name in out for name in HOSTILE[1:2])
        assert "<script>" in out
        assert "[bold]not" in out


def test_markdown_folds_what_did_not_become_slower_or_faster(compare, tmp_path):
    folder = tree(tmp_path / "r", factor=1.2)
    one = records(workload="family.Gone", commit=COMMIT)
    Store(store_path(folder, "box", COMMIT, one[0].env)).append(one)
    output = tmp_path / "deep" / "comment.md"
    code, out, _ = compare(COMMIT, OTHER, "-r", folder, "--format", "markdown", "-o", output)
    text = output.read_text()

    assert (code, out) == (1, "")
    assert text.startswith("**1 slower, 1 incomparable**")
    assert "<details><summary>1 incomparable</summary>" in text
    assert text.index("### Slower") < text.index("<details>")
    assert "<sub>Error rates of box: unknown" in text


def test_markdown_fits_into_a_comment_unless_every_row_is_wanted(compare, tmp_path):
    about = {"n": 1, "stages": ("compile", "trace"), "workload": "family." + "LongName" * 8}
    for commit in (COMMIT, OTHER):
        found = [records(axes={"size": n}, commit=commit, **about)[0] for n in range(400)]
        Store(store_path(tmp_path, "box", commit, found[0].env)).append(found)
    arms = (COMMIT, OTHER, "-r", tmp_path, "--format", "markdown")

    _, out, _ = compare(*arms)
    assert len(out) < 65_536
    assert "<summary>800 unsure</summary>" in out
    assert "cut here, for the length that a comment may have: `--all` lists every row." in out
    _, out, _ = compare(*arms, "--all")
    assert len(out) > 65_536
    assert "cut here" not in out


def test_explain_shows_processes_samples_hosts_programs_and_the_rule(compare, tmp_path):
    folder = tree(tmp_path, factor=1.2, fingerprint="f" * 16)
    arguments = (COMMIT, OTHER, "-r", folder, "--stage", "compile", "--explain")
    _, out, _ = compare(*arguments)

    assert "family.Work · size=8 · compile: slower" in out
    assert "% slower (5 % counts)" in out
    assert "alpha 0.05" in out
    assert out.count("family.Work@cpu#") == 16
    assert " / compile 1.0 ms = " in out
    assert "program: not known" in out
    assert "program ffffffffffff" in out


def test_explain_divides_by_what_the_verdict_divided_by(compare, tmp_path):
    measured = {"stages": ("compile", "execute"), "reference_ns": {"compile": 2e6, "loop": 4e6}}
    for fields in (
        {},
        {"factor": 1.2, "jax": "0.11.2", "commit": OTHER},
        {"factor": 1.2, "jax": "0.12.0", "commit": "e" * 40, "python": "3.12.1"},
    ):
        found = records(**fields, **measured)
        Store(store_path(tmp_path, "box", found[0].commit, found[0].env)).append(found)
    arms = ("0.10.2", "0.11.2", "-r", tmp_path, "--explain")

    _, out, _ = compare(*arms, "--stage", "compile")
    assert "calibrated: value / the Python loop of the same process" in out
    assert out.count(" / loop 4.0 ms = ") == 16
    _, out, _ = compare(COMMIT, COMMIT, "-r", tmp_path, "--explain", "--stage", "compile")
    assert "calibrated: value / the reference's compile of the same process" in out
    assert out.count(" / compile 2.0 ms = ") == 16
    _, out, _ = compare("0.10.2", "0.12.0", "-r", tmp_path, "--explain", "--stage", "compile")
    assert "raw: seconds" in out
    assert out.count("#") == 16
    assert " = " not in out.partition("A: box")[2]


def test_explain_reads_the_records_of_files_and_does_without_records(compare, tmp_path):
    folder = tree(tmp_path / "r", factor=1.2)
    old, new = sorted((folder / "box" / "records").iterdir())
    _, out, _ = compare(old, new, "-r", tmp_path / "none", "--explain")

    assert out.count("family.Work@cpu#") >= 16
    assert "1 slower" in out


def test_the_error_rates_of_the_machine_stand_under_a_comparison(compare, tmp_path):
    folder = tree(tmp_path)
    (folder / "box" / "aa").mkdir()
    rates = rates_of([1.01])
    found = Rate(19, 20, 0.75, 1.0)
    rates.power = [Power("compile", 0.2, "default", found), Power("trace", 0.1, "quick", found)]
    (folder / "box" / "aa" / "one.json").write_bytes(msgspec.json.encode(rates))
    _, out, _ = compare(COMMIT, OTHER, "-r", folder)

    assert (
        "On box, identical arms were called different in 0 of 400 rows (95 %: 0 to 0.9 %; effort "
        "default). Slow-downs put in were found: compile +20 % in 19 of 20.\n" in out
    )


def test_the_newest_error_rates_of_the_effort_come_first_and_bad_files_are_named(tmp_path):
    place = tmp_path / "box" / "aa"
    place.mkdir(parents=True)
    for number, (effort, at) in enumerate((("default", 1), ("default", 2), ("quick", 3))):
        one = msgspec.structs.replace(rates_of([], effort=effort), started_at_ms=at)
        (place / f"{number}.json").write_bytes(msgspec.json.encode(one))

    assert stored_rates.newest(tmp_path, "box", "default").started_at_ms == 2
    assert stored_rates.newest(tmp_path, "box", "6x1").started_at_ms == 3
    assert stored_rates.newest(tmp_path, "elsewhere") is None
    some = msgspec.structs.replace(rates_of([]), started_at_ms=9, narrowed=True)
    (place / "some.json").write_bytes(msgspec.json.encode(some))
    assert stored_rates.newest(tmp_path, "box", "default").started_at_ms == 2
    (place / "9.json").write_text("{}")
    with pytest.warns(HarnessWarning, match=r"9\.json are left out"):
        stored_rates.newest(tmp_path, "box")
    other = msgspec.structs.replace(rates_of([]), schema=99)
    (place / "9.json").write_bytes(msgspec.json.encode(other))
    with pytest.warns(HarnessWarning, match="schema version 99"):
        stored_rates.newest(tmp_path, "box")


def test_records_of_another_schema_version_are_left_out_and_said(compare, tmp_path):
    folder = tree(tmp_path)
    file = next((folder / "box" / "records").iterdir())
    with file.open("ab") as handle:
        handle.write(encode(msgspec.structs.replace(records()[0], schema=99)))
    code, _, err = compare(COMMIT, OTHER, "-r", folder)

    assert code == 0
    assert "1 line(s) of another schema version" in err


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_what_differs_between_the_environments_stands_above(compare, tmp_path, form):
    folder = tree(tmp_path / "other", jax="0.11.2")
    out = compare(COMMIT, OTHER, "-r", folder, "--format", form)[1]
    assert "From A to B: jax 0.10.2 → 0.11.2, flags equal." in out

    assert "From A to B" not in compare(COMMIT, OTHER, "-r", tree(tmp_path / "same"))[1]


@pytest.fixture
def many(tmp_path):
    """A tree with 50 cases of two stages: the first becomes slower, the second stays."""
    for commit, factor in ((COMMIT, 1.0), (OTHER, 1.3)):
        for size in range(50):
            case = records(commit=commit, axes={"size": size}, stages=("trace", "compile"))
            for one in case:
                one.stages["compile"].samples_ns = [
                    factor * ns for ns in one.stages["compile"].samples_ns
                ]
                Store(store_path(tmp_path, one.machine, commit, one.env, one.night)).append([one])
    return tmp_path


def test_many_rows_begin_with_an_overview_by_stage(compare, many):
    code, out, _ = compare(COMMIT, OTHER, "-r", many)
    lines = out.splitlines()

    headings = ["stage", "cases", "B / A, geometric mean", "slower", "faster", "same", "unsure"]
    trace, compiled = lines[2].split(), lines[3].split()

    assert code == 1
    assert re.split(r"  +", lines[1].strip()) == headings
    assert trace[:2] == ["trace", "50"]
    assert 0.98 < float(trace[2]) < 1.02
    assert compiled[:2] == ["compile", "50"]
    assert 1.28 < float(compiled[2]) < 1.32
    assert compiled[3:5] == ["50", "0"]
    assert "Not listed: 10 more slower, 50 same; `--all` lists all." in out
    everything = compare(COMMIT, OTHER, "-r", many, "--all")[1]
    assert len(everything.splitlines()) > len(out.splitlines()) + 50


def test_markdown_of_many_rows_has_the_overview_and_fits_a_comment(compare, many, monkeypatch):
    monkeypatch.setattr(markdown, "MOST_CHARACTERS", 5_000)
    text = compare(COMMIT, OTHER, "-r", many, "--format", "markdown")[1]

    assert re.search(r"\| compile \| 50 \| 1\.[23]\d+ \| 50 \| 0 \| 0 \| 0 \|", text)
    assert text.index("| stage |") < text.index("### Slower")
    assert markdown.CUT in text
    assert len(text) < 5_100


def test_an_overview_has_the_geometric_mean_and_skips_what_has_no_ratio():
    frame = pd.DataFrame(
        {
            "stage": ["execute", "compile", "compile", "compile"],
            "ratio": [1.0, 2.0, 0.5, math.nan],
            "verdict": ["same", "slower", "faster", "incomparable"],
        }
    )
    found = summary.by_stage(frame)

    assert found.to_dict("records") == [
        {
            "stage": "compile",
            "cases": 2,
            "ratio": pytest.approx(1.0),
            "slower": 1,
            "faster": 1,
            "same": 0,
            "unsure": 0,
        },
        {
            "stage": "execute",
            "cases": 1,
            "ratio": 1.0,
            "slower": 0,
            "faster": 0,
            "same": 1,
            "unsure": 0,
        },
    ]
    assert summary.by_stage(frame.head(0)).empty
    assert summary.overview(frame).empty
