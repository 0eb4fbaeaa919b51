"""Every example of the pages is run, or says why not; figures are of the committed results."""

from __future__ import annotations

import itertools
import re

import pytest

from tests import forks
from tests.docs import examples, pages
from tests.docs.transcript import PAGE as TRANSCRIPT

PAGES = pages.pages()
WRITTEN_BY_A_COMMAND = ("docs/jax-by-release.md",)
"""Pages of results with the command that wrote them; tests/cache holds what they say."""


def runs_here(page):
    return page not in (*WRITTEN_BY_A_COMMAND, TRANSCRIPT)


@pytest.mark.slow
@pytest.mark.replay
@pytest.mark.parametrize("page", [p for p in PAGES if runs_here(p) and examples.examples(p)])
def test_the_examples_of_a_page_run(page, tmp_path):
    wrong = examples.run(page, examples.prepared(tmp_path))
    assert not wrong, (
        "\n".join(wrong)
        + "\nAn example that cannot run here says why: <!-- not executed: REASON --> above it."
    )


@pytest.mark.parametrize("page", PAGES)
def test_an_example_that_is_not_run_says_why_or_where(page):
    for block in pages.blocks(page):
        reason, elsewhere = block.mark(examples.NOT_EXECUTED), block.mark(examples.ELSEWHERE)
        if reason is not None:
            assert len(reason.split()) > 2, f"{block.where}: why is it not executed?"
        if elsewhere is not None:
            assert (pages.ROOT / elsewhere).is_file(), f"{block.where}: there is no {elsewhere}"


def test_an_example_that_fails_and_has_no_mark_is_found(tmp_path, monkeypatch):
    text = "```sh\nfalse\n```\n\n```python\nx = 1\n```\n\nMore:\n\n```python\nassert x == 2\n```\n"
    monkeypatch.setattr(examples, "blocks", lambda page: pages.blocks(page, text))
    first, second = examples.run("page.md", examples.prepared(tmp_path))
    assert first == "page.md:1: `false` ended with 1:\n"
    assert "AssertionError" in second


def test_a_mark_belongs_to_the_block_below_it():
    text = "<!-- not executed: needs a GPU -->\n\n    harness run\n\nText.\n\n```sh\nls\n```\n"
    first, second = pages.blocks("page.md", text)
    assert (first.runs, first.mark("not executed")) == ("sh", "needs a GPU")
    assert (second.runs, second.mark("not executed"), second.line) == ("sh", None, 7)


SHOWN = [
    (block, said)
    for block, said in itertools.pairwise(pages.blocks("docs/figures.md"))
    if block.runs == "sh" and said.language == "text"
]


def test_the_table_of_the_figures_is_looked_at():
    assert [block.text.split()[1] for block, _ in SHOWN] == ["compare"]


@pytest.mark.parametrize(("block", "shown"), SHOWN, ids=lambda block: block.text.split()[1])
def test_what_the_page_of_figures_shows_is_said_today(block, shown):
    done = forks.harness(*block.text.split()[1:], cwd=pages.ROOT)
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in shown.text.splitlines():
        words = re.escape(" ".join(line.split())).replace("…", ".*")
        assert any(re.match(words, one) for one in said), line
