"""docs/getting-started.md: what the page does, done in an empty folder, says what it shows."""

from __future__ import annotations

import itertools
import re
import shlex

import pytest

from tests.docs import matching, pages, session, transcript
from tests.docs.pages import blocks

VERDICTS = """\
A: HEAD~1 (commit=c94042f1) · B: HEAD (commit=b413466a)
workload         case      stage         A       B              B / A  verdict  reason
predict.Predict  size=64   compile   28 ms  132 ms   5.55 [4.66, 6.6]  slower   5.55 × slower (5 % …
predict.Predict  size=256  trace    2.9 ms  5.4 ms   1.9 [1.65, 2.19]  slower   90 % slower (10 % …
predict.Predict  size=64   dispatch  13 µs   19 µs   1.3 [0.94, 1.81]  unsure   30 % slower, but …
2 slower, 1 unsure
"""


@pytest.mark.nightly
@pytest.mark.replay
@pytest.mark.timeout(600)  # the page promises ten minutes
def test_the_page_leads_from_a_function_to_a_verdict(tmp_path):
    steps = transcript.replay(tmp_path)
    problems = [problem for step in steps for problem in step.problems()]
    assert not problems, (
        "\n\n".join(problems)
        + "\nIf the page is to change: python -m tests.docs.transcript --write"
    )
    said = "".join(step.said for step in steps)
    assert len(re.findall(r"\bcompile\b.*\bslower\b", said)) >= 2  # the change, in both sizes
    assert not re.findall(r"^predict.*\b(?:failed|refused)\b", said, re.MULTILINE)
    assert (tmp_path / "repository/mypackage/.asv/html/index.html").is_file()


def test_what_is_shown_stands_below_its_commands():
    """A block of output that no command fills would be an invention."""
    found = blocks(transcript.PAGE)
    for before, block in itertools.pairwise(found):
        if block.language == "text":
            assert before.runs, f"{block.where} follows no command"
            assert block.text.strip(), f"{block.where} is empty"


def test_the_front_door_shows_the_verdict_of_the_page():
    (there,) = [block for block in blocks("README.md") if "verdict" in block.text.split("\n")[0]]
    readme = (pages.ROOT / "README.md").read_text("utf-8")
    assert transcript.with_verdict(readme) == readme
    assert there.text.count(" slower\n") >= 2


def test_the_commands_of_the_front_door_are_those_of_the_page():
    def said(page, marked):
        return {
            " ".join(shlex.split(line, comments=True)).removeprefix("python -m ")
            for block in blocks(page)
            if block.runs == "sh" and (block.mark("executed by") == marked or marked is None)
            for line in session.lines(block.text.replace("\\\n", " "))
        }

    front = said("README.md", "tests/docs/test_transcript.py")
    assert len(front) >= 4
    assert front <= said(transcript.PAGE, None)


NOISE = "predict.Predict  size=256  compile  28 ms  31 ms  1.1 [1.05, 1.2]  slower   10 % slower"
EQUAL = "2 unsure (1 changed with an equal program), 1 same\nNot listed: 1 same; `--all` …\n"
WROTE = "wrote         asv.conf.json\nwrote         .gitignore\n"


@pytest.mark.parametrize(
    ("page", "said", "differences"),
    [
        (VERDICTS, VERDICTS.replace("28 ms", "30.5 ms").replace("c94042f1", "01234567"), []),
        (VERDICTS, "\n".join(reversed(VERDICTS.splitlines())), []),
        # What chance decides.
        *(
            (VERDICTS, VERDICTS.replace("unsure", chance), [])
            for chance in ("same", "faster", "slower")
        ),
        ("2 same\n", f"{NOISE}\n1 slower, 1 same\n", []),
        ("3 same\n", EQUAL, []),
        # Another verdict, a line more or less.
        (
            VERDICTS,
            VERDICTS.replace("[4.66, 6.6]  slower ", "[0.9, 6.6]  unsure "),
            ["- predict.Predict size=64 compile slower"],
        ),
        (
            VERDICTS,
            VERDICTS.replace("[0.94, 1.81]  unsure ", "  incomparable "),
            ["+ predict.Predict size=64 dispatch incomparable"],
        ),
        (WROTE, "wrote asv.conf.json\n", ["- wrote .gitignore"]),
        (WROTE, f"{WROTE}failed: x\n", ["+ failed: x"]),
        (f"…\n{WROTE}", f"{WROTE}failed: x\n", []),
    ],
)
def test_only_what_is_neither_number_nor_chance_is_a_difference(page, said, differences):
    assert matching.differences(page, said) == differences


def test_a_command_that_fails_is_named(tmp_path):
    text = (
        "```sh\ntrue\nls no-such-file\n```\n\n<!-- exit code: 1 -->\n\n```sh\nfalse\n```\n"
        "\n<!-- exit code: 0 or 1 -->\n\n```sh\nfalse\n```\n"
    )
    first, second, third = transcript.replay(tmp_path, text)
    assert [command.code for command in first.commands] == [0, 2]
    assert "`ls no-such-file` ended with 2" in first.problems()[0]
    assert second.problems() == third.problems() == []
