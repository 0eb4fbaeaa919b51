"""Run the examples of a page: its commands in one shell, then its Python in one namespace.

They run in a copy of what a clone has: benchmarks, results, examples, and a commit; the results
have a night of a workload besides, which the page of the frame asks for.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.docs import session
from tests.docs.pages import ROOT, Block, blocks
from tests.docs.settings import BEFORE, COMMANDS, FILES
from tests.frame import trees
from tests.init.package import Package

NOT_EXECUTED = "not executed"
ELSEWHERE = "executed by"


def examples(page: str) -> list[Block]:
    """Return the blocks of a page that are to be run here."""
    return [
        block
        for block in blocks(page)
        if (block.runs or block.title)
        and block.mark(NOT_EXECUTED) is None
        and block.mark(ELSEWHERE) is None
    ]


def prepared(folder: Path) -> Package:
    """Return a user whose folder is a small clone of this repository."""
    package = session.fresh(folder)
    for name in ("benchmarks", "docs/example-results", "docs/examples"):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, package.top / name, ignore=skipped)
    shutil.copytree(ROOT / "docs/example-results", package.top / "results")
    shutil.copy(ROOT / "asv.conf.json", package.top)
    for name, text in FILES.items():
        package.write(package.top / name, text)
    stages = {"trace": [1e6], "compile": [9e6]}
    for night in ("", "2026-11-20"):
        about = {"workload": "nn.Predict", "night": night}
        trees.write(
            package.top / "results", *(trees.record(number, stages, **about) for number in range(3))
        )
    package.run("git init --quiet --initial-branch=main .", cwd=package.top)
    package.run("git add . && git commit --quiet -m 'A clone'", cwd=package.top)
    return package


def _of(settings: dict[tuple[str, str], str], block: Block) -> list[str]:
    return [
        text
        for (page, start), text in settings.items()
        if page == block.page and block.text.startswith(start)
    ]


def program(chosen: list[Block]) -> str:
    """Return all Python of a page as one program; what a reader has stands before the block."""
    parts = []
    for block in chosen:
        if block.runs == "python":
            parts += [*_of(BEFORE, block), f"# {block.where}\n{block.text}"]
    return "\n".join(parts)


def run(page: str, package: Package) -> list[str]:
    """Run the examples of a page, and return what went wrong."""
    chosen = examples(page)
    todo = [
        (block, [*_of(COMMANDS, block), *session.commands(block)])
        for block in chosen
        if block.title or block.runs == "sh"
    ]
    wrong = [
        failure
        for (block, _), ran in zip(todo, session.run_blocks(package, todo), strict=True)
        for failure in session.failures(block, ran)
    ]
    text = program(chosen)
    if text:
        package.write(package.top / "page.py", text)
        (done,) = session.run(package, ["python page.py"])
        if done.code:
            wrong.append(f"{page}: Python ended with {done.code}:\n{done.said}")
    return wrong
