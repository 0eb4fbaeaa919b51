"""The one way out: a writer per format, and files that are there as a whole or not at all."""

import io
import json
import math
import re
import warnings
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from harness.cli import ir
from harness.cli.output import (
    WIDTH,
    Format,
    Heading,
    Output,
    Text,
    TextTable,
    escaped,
    json_text,
    print_page,
    say,
    warnings_said,
)
from harness.errors import StoreError

FRAME = pd.DataFrame(
    {
        "name": ["a|b", "ü"],
        "value": [1.5, math.nan],
        "when": pd.to_datetime(["2026-01-02", None], utc=True),
    }
)


def page():
    return [Heading("Two *rows*"), TextTable(FRAME.astype(str)), "A line with x_1 and _y_."]


def test_a_page_in_markdown_leaves_text_as_it_is(capsys):
    Output(Format.markdown).show(page(), FRAME)
    said = capsys.readouterr().out
    assert said.startswith("**Two \\*rows\\***\n\n| name | value | when |\n| --- |")
    assert "| a\\|b | 1.5 |" in said
    assert said.rstrip().endswith("- A line with x_1 and \\_y\\_.")


def test_json_is_strict_and_csv_is_everything(capsys):
    Output(Format.json).show(page(), FRAME)
    first, second = json.loads(capsys.readouterr().out)
    assert first == {"name": "a|b", "value": 1.5, "when": "2026-01-02T00:00:00+00:00"}
    assert (second["value"], second["when"]) == (None, None)
    assert json.loads(json_text({"a": [math.inf, (1,)]})) == {"a": [None, [1]]}
    Output(Format.json).show(page(), FRAME, {"own": FRAME["value"].iloc[0]})
    assert json.loads(capsys.readouterr().out) == {"own": 1.5}
    Output(Format.csv).show(page(), FRAME)
    assert capsys.readouterr().out.splitlines()[0] == "name,value,when"


def test_a_file_is_replaced_as_a_whole_or_stays(tmp_path):
    file = tmp_path / "deep" / "page.txt"
    Output(path=file).page(page())
    before = file.read_text()
    assert "Two *rows*" in before

    def failing():
        yield "half"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        Output(path=file).page(failing())
    assert file.read_text() == before
    assert [path.name for path in file.parent.iterdir()] == ["page.txt"]
    with pytest.raises(StoreError, match=r"cannot be written: Is a directory. Choose another"):
        Output(path=tmp_path).text("a")
    with pytest.raises(StoreError, match=r"cannot be written: (File exists|Not a directory)"):
        Output(path=file / "below").text("a")


def test_what_is_no_file_is_written_directly(capfd):
    Output(path=Path("/dev/stdout")).text("straight")
    assert capfd.readouterr().out == "straight\n"


def test_what_is_said_goes_to_standard_error_and_each_warning_once(capsys):
    say("one", "two")
    with warnings_said():
        for _ in range(2):
            warnings.warn("mind", stacklevel=1)
    assert capsys.readouterr() == ("", "harness: one\nharness: two\nharness: mind\n")


WIDE = pd.DataFrame(
    {
        "workload": ["control_flow.UnrolledLoop", "dense.MlpLoss"],
        "case": ["unroll=16, transform=gradient", "depth=4, scenario=cold"],
        "stage": ["compile", "trace"],
        "A": ["120 ms", "31 ± 2 µs"],
        "B": ["87 ms", ""],
        "B / A": ["0.725 [0.682, 0.771]", "1.13 [1.02, 1.26]"],
        "verdict": ["faster", "slower"],
        "reason": [
            "38 % faster (threshold 5 %), " + "for many reasons, " * 20 + "the end",
            "short",
        ],
    }
)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 140, 200, 400])
def test_a_table_is_a_line_a_row_at_every_width_and_numbers_are_whole(width):
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, highlight=False)
    table = TextTable(
        WIDE,
        ("stage", "verdict", "reason"),
        ("workload", "case", "reason"),
        ("reason", "B", "A"),
        last=("verdict",),
    )
    print_page([table], console)
    header, *lines = re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue()).splitlines()
    rows = lines[: len(WIDE)]
    assert max(map(len, [header, *lines])) <= width
    headings = re.split(r" {2,}", header.strip())
    assert headings == [name for name in WIDE if name in headings]
    assert headings[:2] == ["workload", "case"]
    for name in headings:
        if name not in table.cut:
            assert all(cell in row for row, cell in zip(rows, WIDE[name], strict=True))
    left_out = [name for name in WIDE if name not in headings]
    assert (lines[len(WIDE) :] != []) == bool(left_out)
    assert all(name in " ".join(lines[len(WIDE) :]) for name in left_out)
    assert ("verdict" in headings) == (width >= 60)
    assert ("reason" in headings) == (width >= 200)


def test_a_pipe_gets_every_table_whole():
    file = io.StringIO()
    print_page([TextTable(WIDE, cut=("reason",))], Console(file=file, width=WIDTH))
    assert all(cell in file.getvalue() for name in WIDE for cell in WIDE[name])


def test_texts_that_differ_look_different_where_they_are_cut():
    frame = pd.DataFrame({"case": [f"size={'1' * 60}, form={form}" for form in ("roll", "pad")]})
    console = Console(file=io.StringIO(), width=30, force_terminal=True)
    print_page([TextTable(frame, cut=("case",))], console)
    _, one, other = console.file.getvalue().splitlines()
    assert one.endswith("form=roll")
    assert one != other


def test_sentences_break_between_words():
    console = Console(file=io.StringIO(), width=20, force_terminal=True, color_system=None)
    print_page(["  a sentence of several words"], console)
    assert console.file.getvalue().splitlines() == ["  a sentence of", "  several words"]


def test_a_tree_keeps_its_indentation_and_leaves_columns_out():
    name = "  ThunkEmitter::EmitEntryComputation > FusionCompiler::Compile"
    frame = pd.DataFrame({"pass": ["all", name], "wall": ["14 s", "1 s"], "own": ["1 s", "9 ms"]})
    pages = {}
    for width in (80, 48):
        console = Console(file=io.StringIO(), width=width, highlight=False)
        print_page([TextTable(frame, cut=("pass",), dropped=("own",))], console)
        pages[width] = console.file.getvalue().splitlines()
        assert max(map(len, pages[width])) <= width
    assert [page[0].split() for page in pages.values()] == [
        ["pass", "wall", "own"],
        ["pass", "wall"],
    ]
    assert all(page[2].startswith("  Thunk") for page in pages.values())


ESCAPE = "\x1b[31mred\x9b0m\u202e [bold]"


def test_no_command_prints_what_would_steer_a_terminal(capsys, tmp_path, command):
    frame = pd.DataFrame({"name": [ESCAPE]})
    parts = [f"{ESCAPE}\udcff", Heading(ESCAPE), TextTable(frame), Text(ESCAPE)]
    for form in ("table", "markdown", "json"):
        Output(Format(form)).show(parts, frame)
    say(ESCAPE)
    for coloured in (ir.coloured(ESCAPE), ir.coloured_difference(f"+{ESCAPE}")):
        assert all(line.plain.isprintable() for line in coloured)
    shown = capsys.readouterr()
    assert "[bold]\\udcff\n" in shown.out
    for text in (shown.out, shown.err):
        assert "\\x1b[31mred\\x9b0m\\x202e [bold]" in text
        assert [one for one in text if not one.isprintable() and one != "\n"] == []
    code, _, said = command("show", "--results", tmp_path / ESCAPE)
    assert code == 2
    assert "\\x1b[31mred" in said
    assert "\x1b" not in said
    assert escaped("@someone <b>") == "&#64;someone &lt;b&gt;"
    text = f"{ESCAPE}\U000f0000 \t\n\u200d é"
    assert json.loads(json_text({"a": text})) == {"a": text}
