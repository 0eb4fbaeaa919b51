"""What the pages name is there: files, recipes, exit codes, and commands with their options."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

import pytest

from harness.cli import app
from harness.errors import ExitCode
from tests.added import recipes
from tests.docs import pages

_PATH = re.compile(r"(?<![\w/.~-])(?:harness|tests|tools|docs)/[\w/.*-]*[\w/*]")
_MODULE = re.compile(r"python -m ((?:tests|tools)\.[\w.]+)")


def named(text):
    """Return the paths of this repository that a text names between backquotes."""
    for quoted in re.findall(r"`([^`\n]+)`", text):
        yield from _PATH.findall(quoted)
        yield from (name.replace(".", "/") for name in _MODULE.findall(quoted))


def is_there(path):
    folder = pages.ROOT
    if "*" in path:
        return any(folder.glob(path))
    return (folder / path).exists() or (folder / f"{path}.py").exists()


@pytest.mark.parametrize("page", pages.pages())
def test_every_path_that_a_page_names_is_there(page):
    text = (pages.ROOT / page).read_text(encoding="utf-8")
    for block in pages.blocks(page):
        text = text.replace(block.text, "")
    made = {new.title for new, _ in recipes()}
    assert [path for path in named(text) if path not in made and not is_there(path)] == []


def not_taken(text):
    """Yield each command of a figure that is given what its file does not take."""
    for module, given in re.findall(r"python -m (tools\.performance\.\w+)([^`|\n]*)", text):
        source = (pages.ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        (call,) = [
            node
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("options")
        ] or [None]
        if call is not None:
            taken = {keyword.arg.replace("_", "-") for keyword in call.keywords if keyword.arg}
            options = set(re.findall(r"--([\w-]+)", given))
            positional = bool(given.split()) and not given.split()[0].startswith("-")
            if options - taken or (positional and "select" not in taken):
                yield f"{module}{given}"


@pytest.mark.parametrize("page", pages.pages())
def test_every_command_of_a_figure_takes_what_it_is_given(page):
    assert list(not_taken((pages.ROOT / page).read_text(encoding="utf-8"))) == []


def test_what_a_command_of_a_figure_does_not_take_is_found():
    wrong = ("saved 8", "saved --rounds 3", "saved --processes 1")
    text = "".join(f"`python -m tools.performance.{each}`" for each in wrong)
    assert [said.rpartition(".")[2] for said in not_taken(text)] == ["saved 8", "saved --rounds 3"]


def test_a_path_of_nothing_would_be_noticed():
    text = "See `harness/none.py` and `python -m tools.none --write docs/glossary.md`."
    assert [path for path in named(text) if not is_there(path)] == ["harness/none.py", "tools/none"]


def test_there_are_seven_recipes_and_each_names_the_test_that_follows_it():
    marks = [new.mark("executed by") for new, _ in recipes()]
    assert len(marks) == 7
    assert set(marks) == {"tests/test_added.py", "tests/profiles/causes/test_registry.py"}


def test_the_glossary_explains_a_noun_once():
    rows = re.findall(
        r"^\| (\*\*.*?) \|", (pages.ROOT / "docs/glossary.md").read_text(), re.MULTILINE
    )
    assert len(rows) > 30
    assert len(rows) == len(set(rows))


def test_every_exit_code_is_explained_once():
    codes = app.help.partition("Exit codes:")[2]
    named = list(map(int, re.findall(r"\b\d+\b", codes)))
    assert len(named) == len({*named})
    assert {*named} == {*map(int, ExitCode), 129, 143}  # SIGHUP and SIGTERM


MOST_BYTES, MOST_PAGES = 180_000, 20
"""Of docs/, but for the pages of the reference, which are generated."""


def test_the_docs_are_20_pages_of_180_kb_at_most():
    docs = pages.ROOT / "docs"
    written = [path for path in docs.rglob("*.md") if path.parent.name != "reference"]
    assert len(written) <= MOST_PAGES
    assert sum(path.stat().st_size for path in written) <= MOST_BYTES


IN_A_BLOCK = re.compile(r"(?:^|&& |\$ )(?:[A-Z_]+=\S+ )*(harness [^\n]*)", re.MULTILINE)
IN_A_SENTENCE = re.compile(r"`((?:[A-Z_]+=\S+\s+)*harness\s+[a-z][^`]*)`")
FENCED = re.compile(r"^(```+).*?^\1$", re.DOTALL | re.MULTILINE)


def commands(page: str, text: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield each command of a page with where it stands: in its blocks, and between backticks."""
    for block in pages.blocks(page, text):
        if block.runs == "sh":
            for line in IN_A_BLOCK.findall(block.text.replace("\\\n", " ")):
                yield block.where, line
    if text is None:
        text = (pages.ROOT / page).read_text(encoding="utf-8")
    for said in IN_A_SENTENCE.findall(FENCED.sub("", text)):
        yield page, re.sub(r"^.*?(?=harness\s)", "", " ".join(said.split()))


def options_of(command):
    return {name for parameter in command.params for name in parameter.opts} | {
        "-h",
        "--help",
        "--help-all",
    }


def unknown(line: str) -> str:
    """Return the word or option of a line of `harness` that no command knows, or nothing."""
    words = shlex.split(line, comments=True)[1:]
    command = app
    # What follows -- is another program's.
    dashes = "--" in words
    words = words[: words.index("--")] if dashes else words
    for word in words:
        if word in ("&&", "|", ">", "<") or word.startswith((">", "2>")):
            return ""
        nested = getattr(command, "commands", {})
        if word.startswith("-"):
            if "run" in nested and dashes:
                command = command.get_command(None, "run")  # harness profile [OPTIONS] -- PROGRAM
            option = word.partition("=")[0]
            if re.fullmatch(r"--?[a-zA-Z][\w-]*", option) and option not in options_of(command):
                return option
        elif nested:
            if word not in nested and not ("run" in nested and dashes):
                return word
            command = command.get_command(None, word) if word in nested else command
    return ""


@pytest.mark.parametrize("page", pages.pages())
def test_every_command_and_option_of_a_page_is_one_that_there_is(page):
    wrong = [
        f"{where}: `{line}`: harness knows no {unknown(line)}"
        for where, line in commands(page)
        if unknown(line)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("harness measure Gelu", "measure"),
        ("harness run Gelu --efort quick", "--efort"),
        ("harness cache doktor DIR", "doktor"),
        ("harness profile --lively -- python a.py --steps 3", "--lively"),
        ("harness run Gelu --effort quick   # --efort", ""),
        ("harness profile -o now -- python train.py --steps 3", ""),
    ],
)
def test_an_unknown_command_or_option_is_noticed(line, said):
    assert unknown(line) == said


def test_commands_are_found_in_blocks_and_in_sentences():
    text = "As `harness\nrun --on` and `HARNESS_FRESH=1 harness show`:\n\n    harness list  # a\n"
    found = [line for _, line in commands("page.md", text)]
    assert found == ["harness list  # a", "harness run --on", "harness show"]
