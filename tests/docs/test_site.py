"""The site is built strictly, holds every public name and command, and its links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import harness
import harness.errors
from harness.cli import app
from tests.output.report.pages import start_browser, wait_until

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.nightly  # `make docs` builds it strictly at every push


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    return folder


class Page(HTMLParser):
    """What a page refers to, and what may be referred to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.headings = 0
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.anchors.add(given.get("id", ""))
        self.headings += re.fullmatch("h[1-6]", tag) is not None and "id" in given
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag in ("script", "img", "iframe", "source") and "src" in given:
            self.loaded.append(given["src"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect"):
            self.loaded.append(given["href"])


@pytest.fixture(scope="module")
def pages(site) -> dict[Path, Page]:
    # The page for addresses that are not there knows its own only when it is published.
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_link_leads_to_a_page_and_a_place_in_it(pages):
    wrong = defaultdict(list)
    for path, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = target.is_file()
            if there and target.suffix == ".html":
                there = unquote(parts.fragment) in pages[target].anchors
            if not there:
                wrong[path.name].append(link)
    assert not wrong
    # One to a file that is no page leads to a page that shows it.
    profile = next(path for path in pages if path.name == "profile.html")
    assert "source/docs/examples/slow_start.py.html" in pages[profile].links


def test_no_page_loads_anything_from_elsewhere(pages):
    loaded = {address for page in pages.values() for address in page.loaded}
    assert not [address for address in loaded if urlsplit(address).scheme not in ("", "data")]
    assert len(loaded) > 5


def test_every_heading_of_a_file_is_one_of_its_page(pages, site):
    """Markdown here asks for empty lines where GitHub does not: without one a heading is text."""
    for file in sorted((ROOT / "docs").rglob("*.md")):
        text = re.sub(r"^(```+).*?^\1$", "", file.read_text(), flags=re.DOTALL | re.MULTILINE)
        uri = file.relative_to(ROOT / "docs").with_suffix(".html")
        uri = uri.with_name("index.html") if uri.name == "README.html" else uri
        given = len(re.findall(r"^#+ ", text, re.MULTILINE)) + text.count("\n::: ")
        assert pages[site / uri].headings >= given, file


def test_a_table_of_a_file_is_a_table_of_its_page(pages):
    """A row that an empty line parts from its table is text; a bar in code has no backslash."""
    bare, escaped = re.compile(r"<p>\s*\|"), re.compile(r"<code>[^<]*\\\|")
    texts = {path.name: path.read_text() for path in pages}
    assert [name for name, text in texts.items() if bare.search(text) or escaped.search(text)] == []


def test_the_reference_holds_every_public_name_with_its_arguments(pages, site):
    reference = [path for path in pages if path.parent == site / "reference"]
    anchors = {anchor for path in reference for anchor in pages[path].anchors}
    texts = "".join(path.read_text() for path in reference)
    for name in harness.__all__:
        assert f"harness.{name}" in (texts if name == "__version__" else anchors), name
    for name, found in vars(harness.errors).items():
        if isinstance(found, type) and found.__module__ == "harness.errors":
            assert any(anchor.endswith(f".{name}") for anchor in anchors), name
    for name in ("ledger", "summarize", "frame", "LedgerError"):
        assert f"harness.cache.ledger.{name}" in anchors, name
    measuring = (site / "reference" / "measuring.html").read_text()
    for argument in ("workloads", "effort", "with_baselines", "memory_limit_bytes"):
        assert f"<code>{argument}</code>" in measuring
    assert "seconds that one pass over one case may take" in measuring


def test_roles_and_files_that_docstrings_name_are_links(site):
    reading = (site / "reference" / "reading.html").read_text()
    assert 'href="measuring.html#harness.sweep"' in reading
    assert 'href="errors.html#harness.errors.StoreError"' in reading  # named, not imported there
    assert 'href="../method.html">docs/method.md</a>' in reading
    for page in (site / "reference").glob("*.html"):
        assert not re.search(r":(?:attr|class|data|func|meth|mod):", page.read_text()), page


def test_the_reference_holds_every_commands_help(site):
    page = (site / "reference" / "command-line.html").read_text()

    def walk(name, command):
        assert f'id="{name.replace(" ", "-")}"' in page, name
        assert f"Usage: {name}" in page
        for child in command.list_commands(None) if hasattr(command, "commands") else ():
            walk(f"{name} {child}", command.get_command(None, child))

    walk("harness", app)
    assert "--with-baselines" in page


def test_search_finds_pages_and_sections_but_no_source_files(site):
    index = json.loads((site / "search" / "search_index.json").read_text())
    places = {entry["location"] for entry in index["docs"]}
    assert {"index.html", "method.html#verdicts", "reference/reading.html#harness.load"} <= places
    assert not [place for place in places if place.startswith("source/")]
    # The same for a site that is opened from files.
    assert (site / "search" / "search_index.js").is_file()


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Any]:
    started = start_browser(tmp_path_factory.mktemp("profile"))
    yield started
    started.quit()


def test_search_works_without_a_server(browser, site):
    browser.get((site / "reference" / "errors.html").as_uri())
    browser.find_element("css selector", ".md-search__input").send_keys("roofline")
    found = "document.querySelector('.md-search-result__link')?.href"
    assert wait_until(browser, found).startswith(site.as_uri())
    assert not browser.get_log("browser")


def test_no_wide_page_scrolls_sideways_in_a_narrow_window(browser, site):
    narrow = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    for name in ("index", "figures", "frame", "baselines", "analysis", "reference/reading"):
        browser.get((site / f"{name}.html").as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 400, name
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_figures_stand_on_white_in_the_dark(browser, site):
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    browser.get((site / "index.html").as_uri())
    wait_until(browser, "document.body.dataset.mdColorScheme == 'slate'")
    style = "getComputedStyle(document.querySelector('article img')).backgroundColor"
    assert browser.execute_script(f"return {style}") == "rgb(255, 255, 255)"


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (
            {
                "docs/frame.md": "[a](no-such-page.md) [b](method.md#no-such-place)",
                "docs/glossary.md": "[c](figures.md) [d](../no-such-file.py)",
                "docs/forgotten.md": "# In no chapter",
            },
            ("no-such-page.md", "#no-such-place", "no-such-file.py", "forgotten.md"),
        ),
        ({"docs/reference/measuring.md": "::: harness.no_such_name"}, ("no_such_name",)),
    ],
)
def test_what_is_wrong_in_a_page_fails_the_build(tmp_path, spoilt, said):
    """In a copy of the pages that has their headings only: what stands below them takes long."""
    for name in ("mkdocs.yml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for page in tmp_path.rglob("*.md"):
        text = re.sub(r"^(```+).*?^\1$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        page.write_text("\n\n".join([*re.findall(r"^#+ .*$", text, re.MULTILINE), ""]))
    for name in ("harness", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    for file, text in spoilt.items():
        with (tmp_path / file).open("a") as page:
            page.write(f"\n\n{text}\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    for words in said:
        assert words in done.stderr, words
    assert "figures.md" not in done.stderr
