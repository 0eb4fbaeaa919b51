"""Every picture of the pages is made by `python -m tools.images`."""

from __future__ import annotations

import posixpath
import re
from xml.etree import ElementTree

import pytest

from tests.docs.pages import ROOT, pages
from tools import images

MOST_BYTES = 150_000
REFERENCE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)|<img[^>]*\ssrc=\"([^\"]+)\"")


def references():
    """Yield each page, what it says of a picture, and the picture's path in the repository."""
    for page in pages():
        for said, path, tag in REFERENCE.findall((ROOT / page).read_text(encoding="utf-8")):
            picture = posixpath.join(posixpath.dirname(page), path or tag)
            yield page, said, posixpath.normpath(picture)


def test_the_command_knows_every_picture_and_no_other():
    shown = {path for *_, path in references()}
    assert shown == set(images.PICTURES)


def test_every_picture_is_there_and_small():
    for picture in images.PICTURES:
        file = ROOT / picture
        assert 0 < file.stat().st_size < MOST_BYTES, picture
        if file.suffix == ".png":
            assert file.read_bytes().startswith(b"\x89PNG"), picture
        else:
            ElementTree.parse(file)


def test_a_picture_says_in_words_what_it_shows():
    assert [page for page, said, _ in references() if len(said) < 20] == []


@pytest.mark.nightly
@pytest.mark.parametrize("picture", ["docs/baselines.svg", "docs/stages.svg"])
def test_a_figure_is_drawn(picture, tmp_path):
    made = ElementTree.parse(images.make(picture, tmp_path)).getroot()
    committed = ElementTree.parse(ROOT / picture).getroot()
    texts = [set(root.itertext()) for root in (made, committed)]
    assert texts[0] == texts[1], f"python -m tools.images {picture}"


@pytest.mark.nightly
def test_a_screenshot_is_taken(tmp_path):
    file = images.make("docs/images/report.png", tmp_path)
    head = file.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    size = tuple(int.from_bytes(head[at : at + 4], "big") for at in (16, 20))
    assert size == images.WINDOW


def test_an_unknown_picture_is_named():
    with pytest.raises(SystemExit, match=r"No such picture: docs/x\.svg"):
        images.main(["docs/x.svg"])
