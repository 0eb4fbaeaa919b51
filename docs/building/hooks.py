"""What mkdocs.yml asks of MkDocs besides: pages from outside docs/, and links that work there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

# MkDocs has this folder on the path only while it loads this file.
HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from made_pages import made_pages  # noqa: E402
from repository_links import Repository, outside_fences  # noqa: E402

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_repositories: dict[str, Repository] = {}
"""By configuration file."""

_CODE_IN_A_TABLE = re.compile(r"^\|.*`.*$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and one for each file of the repository that a page links to."""
    root = Path(config.config_file_path).parent
    repository = Repository(root)
    for page in made_pages(root):
        files.append(File.generated(config, page.uri, content=page.text))
        repository.know(page.source, page.uri)
    for file in files:
        if file.generated_by is None and not file.inclusion.is_excluded():
            repository.know(f"docs/{file.src_uri}", file.src_uri)
    for file in list(files.documentation_pages()):
        for uri, text in repository.pages_for_links_of(file.src_uri, file.content_string):
            files.append(File.generated(config, uri, content=text))
    _repositories[config.config_file_path] = repository
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links go where the repository's files are in the site, and show bars in code as bars."""
    repository = _repositories[config.config_file_path]
    return outside_fences(
        repository.with_links_of_the_site(page.file.src_uri, markdown),
        lambda text: _CODE_IN_A_TABLE.sub(_with_bars, text),
    )


def _with_bars(row: re.Match[str]) -> str:
    r"""Return a row of a table with `|` for `\|` in code: GitHub takes the backslash away there."""
    return re.sub(r"`[^`]*`", lambda code: code[0].replace(r"\|", "|"), row[0])


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make links of the pages that docstrings and help texts name, as in `see docs/frame.md`."""
    if not page.file.src_uri.startswith("reference/"):
        return html

    def link(found: re.Match[str]) -> str:
        target = files.get_file_from_path(found[1])
        if target is None:
            return found[0]
        return f'<a href="{target.url_relative_to(page.file)}">{found[0]}</a>'

    return re.sub(r"\bdocs/([\w/-]+\.md)\b", link, html)
