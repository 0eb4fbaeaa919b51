"""Links between files of the repository, and where they lead in the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

LANGUAGES = {
    ".json": "json", ".md": "markdown", ".pbtxt": "text", ".py": "python", ".sh": "bash",
    ".toml": "toml", ".txt": "text", ".yaml": "yaml", ".yml": "yaml",
}  # fmt: skip
"""What may be shown as a page of source text, and its highlighting."""

_FENCED = re.compile(r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)\s*?$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()(?P<path>[^\s)#:]+)(?P<anchor>#[^\s)]*)?(?=\))")


class Repository:
    """Which file of the repository is which page of the site.

    A link is relative to the file that it stands in, so that it works where the files are read as
    they are. One to a page leads to that page; one to another file or folder of the repository to
    a page that shows it. All others stay, and MkDocs says that nothing is there.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._page: dict[str, str] = {}
        self._source: dict[str, str] = {}

    def know(self, source: str, uri: str) -> None:
        """Remember that a file of the repository, `path` or `path#anchor`, is a page or image."""
        self._page[source] = uri
        self._source.setdefault(uri, source.partition("#")[0])

    def pages_for_links_of(self, uri: str, markdown: str) -> Iterator[tuple[str, str]]:
        """Yield address and text of each page that the links in `markdown` need besides."""
        for found in _LINK.finditer(_FENCED.sub("", markdown)):
            yield from self._pages_for(self._target(uri, found["path"]))

    def with_links_of_the_site(self, uri: str, markdown: str) -> str:
        """Return the text of the page `uri` with the links that are right in the site."""
        folder = posixpath.dirname(uri)

        def moved(found: re.Match[str]) -> str:
            target, anchor = self._target(uri, found["path"]), found["anchor"] or ""
            page = self._page.get(target + anchor) or self._page.get(target)
            return posixpath.relpath(page, folder or ".") + anchor if page else found[0]

        return outside_fences(markdown, lambda text: _LINK.sub(moved, text))

    def _target(self, uri: str, path: str) -> str:
        """Return what a link on the page `uri` means, as a path from the top of the repository."""
        return posixpath.normpath(posixpath.join(posixpath.dirname(self._source[uri]), path))

    def _pages_for(self, target: str) -> Iterator[tuple[str, str]]:
        path = self._root / target
        if target in self._page or target.startswith(".."):
            return
        if path.is_dir():
            names = sorted(file.name for file in path.iterdir() if file.suffix in LANGUAGES)
            text = "\n".join(f"- [{name}]({name})" for name in names)
            self._page[target] = f"source/{target}/index.md"
            self._source[self._page[target]] = f"{target}/index.md"
            yield self._page[target], _unsearched(f"# {target}\n\n{text}\n")
            for name in names:
                yield from self._pages_for(f"{target}/{name}")
        elif path.is_file() and path.suffix in LANGUAGES:
            self._page[target] = f"source/{target}.md"
            self._source[self._page[target]] = target
            fence = f'`````{LANGUAGES[path.suffix]} linenums="1"'
            code = f"{fence}\n{path.read_text().rstrip()}\n`````"
            yield self._page[target], _unsearched(f"# {target}\n\n{code}\n")


def _unsearched(text: str) -> str:
    """Return a page that search does not look into."""
    return f"---\nsearch:\n  exclude: true\n---\n\n{text}"


def outside_fences(markdown: str, change: Callable[[str], str]) -> str:
    """Return a text with everything but its fenced blocks changed."""
    parts, end = [], 0
    for fenced in _FENCED.finditer(markdown):
        parts += [change(markdown[end : fenced.start()]), fenced[0]]
        end = fenced.end()
    return "".join([*parts, change(markdown[end:])])
