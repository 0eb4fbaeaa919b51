"""docs/figures.md shows what the commands say of the results that are committed."""

import itertools
import re

import pytest

from tests import forks
from tests.docs import pages

BLOCKS = pages.blocks("docs/figures.md")
SHOWN = [
    (block, said)
    for block, said in itertools.pairwise(BLOCKS)
    if block.runs == "sh" and said.language == "text"
]


def test_both_tables_are_looked_at():
    assert [block.text.split()[1] for block, _ in SHOWN] == ["compare", "show"]


@pytest.mark.parametrize(("block", "shown"), SHOWN, ids=lambda block: block.text.split()[1])
def test_what_the_page_shows_is_said_today(block, shown, tmp_path):
    results = ("-r", pages.ROOT / "results")
    done = forks.harness(*block.text.split()[1:], *results, cwd=tmp_path)
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in shown.text.splitlines():
        words = re.escape(" ".join(line.split())).replace("…", ".*")
        assert any(re.match(words, one) for one in said), line
