"""Break the core on purpose, one small change at a time, and name what no test notices.

`python -m tools.mutants --count 200` copies the repository, and runs each file of tests once with
coverage (`pip install coverage`), to know which of them execute which line, in any process. Then it
changes one place of one module (a comparison, a sign, a constant, a condition, a statement that is
lost), and runs the tests that execute it, until one fails. A mutant that nothing notices is printed
as a difference. The seed makes the choice repeatable; what is done is kept in files, so that a run
that was stopped goes on.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]

CORE = (
    *("workload", "records", "stages", "measure", "frame", "verdicts"),
    *("program", "cache", "profiles/causes"),
)
"""Rooms whose mistakes would be numbers or verdicts that are silently wrong."""

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
COVERAGE = """
[run]
source = {copy}/harness
data_file = {folder}/lines
parallel = true
patch = subprocess, _exit, fork
sigterm = true
core = {core}
disable_warnings = no-data-collected, module-not-measured, couldnt-parse
"""
"""Of every process that tests start, also of one that is forked, or ends at once."""

SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}


@dataclass(frozen=True)
class Mutant:
    """One change of one line or statement."""

    file: str
    line: int
    what: str
    before: str
    after: str
    start: tuple[int, int]
    end: tuple[int, int]


def replaced(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what `node` can become: the kind of change, and the new source."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            other = ast.Compare(node.left, [COMPARISONS[type(op)]()], node.comparators)
            yield "comparison", ast.unparse(other)
        case ast.BinOp(op=op) if type(op) in SIGNS and not _is_text(node):
            yield "sign", ast.unparse(ast.BinOp(node.left, SIGNS[type(op)](), node.right))
        case ast.UnaryOp(op=ast.Not()):
            yield "condition", ast.unparse(node.operand)
        case ast.BoolOp(op=op):
            other_op = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "condition", f"({ast.unparse(ast.BoolOp(other_op, node.values))})"
        case ast.Constant(value=bool() as value):
            yield "constant", str(not value)
        case ast.Constant(value=int() as value):
            yield "constant", repr(value + 1)
        case ast.Constant(value=float() as value):
            yield "constant", repr(2 * value or 1.0)
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield "lost statement", "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "lost statement", "pass"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "lost value", "return None"


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    texts = (ast.JoinedStr, ast.List, ast.Tuple)
    return any(
        isinstance(s, texts) or (isinstance(s, ast.Constant) and isinstance(s.value, str))
        for s in sides
    )


def changeable(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module that run: no annotation, no docstring, nothing for types."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params", "decorator_list"):
            continue
        if isinstance(node, ast.ClassDef) and name in ("bases", "keywords"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Raise | ast.Import | ast.ImportFrom):
                continue
            if isinstance(child, ast.keyword) and child.arg in ("order", "strict"):
                continue  # a number that only has to lie between two others; a guard of `zip`
            yield child
            yield from changeable(child)


def mutants(file: Path) -> list[Mutant]:
    """Return every mutant of a file."""
    text = file.read_text()
    found = []
    for node in changeable(ast.parse(text)):
        for what, after in replaced(node):
            before = ast.get_source_segment(text, node) or ""
            start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
            name = str(file.relative_to(ROOT))
            found.append(Mutant(name, node.lineno, what, before, after, start, end))
    return found


def chosen(count: int, seed: int, rooms: tuple[str, ...]) -> list[Mutant]:
    """Return `count` mutants: modules in turn, so that a long one does not have them all."""
    pick = random.Random(seed)
    files = sorted(f for room in rooms for f in (ROOT / "harness" / room).rglob("*.py"))
    left = {file: pick.sample(found, len(found)) for file in files if (found := mutants(file))}
    taken: list[Mutant] = []
    while left and len(taken) < count:
        for file in pick.sample(sorted(left), len(left)):
            taken.append(left[file].pop())
            if not left[file]:
                del left[file]
    return taken[:count]


def applied(mutant: Mutant, text: str) -> str:
    """Return the source with the change made."""
    lines = text.splitlines(keepends=True)
    (first, left), (last, right) = mutant.start, mutant.end
    head = lines[first - 1].encode()[:left].decode()
    tail = lines[last - 1].encode()[right:].decode()
    after = mutant.after if mutant.what.startswith("lost") else f"({mutant.after})"
    return "".join([*lines[: first - 1], head, after, tail, *lines[last:]])


class Executed(NamedTuple):
    """What a file of tests executes."""

    test: str
    seconds: float
    lines: dict[str, list[int]]
    """By module, as far as the processes that it started have told."""


def executed(test: str, copy: Path, timeout_s: float) -> Executed:
    """Run a file of tests in a copy of the repository with coverage in every process."""
    from coverage import CoverageData, CoverageException

    found: defaultdict[str, set[int]] = defaultdict(set)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        settings = Path(folder, "settings")
        core = "sysmon" if sys.version_info >= (3, 12) else "ctrace"
        settings.write_text(COVERAGE.format(copy=copy, folder=folder, core=core))
        began = time.monotonic()
        run_pytest([test], copy, timeout_s, "coverage", "run", f"--rcfile={settings}", "-m")
        seconds = time.monotonic() - began
        for file in Path(folder).glob("lines.*"):
            data = CoverageData(str(file))
            try:
                data.read()
            except CoverageException:
                continue  # of a process that was killed while it wrote
            for module in data.measured_files():
                found[str(Path(module).relative_to(copy))] |= set(data.lines(module) or ())
    return Executed(test, seconds, {name: sorted(lines) for name, lines in found.items() if lines})


def statement(file: Path, line: int) -> range:
    """Return the lines of the innermost statement at a line; of a compound one its head."""
    around = [
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line)
    ]
    own = max(around, key=lambda node: node.lineno)
    body = getattr(own, "body", None)
    return range(own.lineno, (body[0].lineno if body else (own.end_lineno or line) + 1))


def tests_of(mutant: Mutant, known: list[Executed]) -> list[str]:
    """Return the files of tests that execute a mutant, the likeliest to notice it first.

    Those of the module come first, then those that name it, then its room's, then what is quick.
    """
    parts = Path(mutant.file).with_suffix("").parts
    dotted, room = ".".join(parts), parts[1]
    parent, _, leaf = dotted.rpartition(".")
    named = re.compile(rf"\b{re.escape(dotted)}\b|from {re.escape(parent)} import [^\n]*\b{leaf}\b")
    lines = set(statement(ROOT / mutant.file, mutant.line))

    def place(one: Executed) -> tuple[bool, bool, bool, float]:
        file = Path(one.test)
        names_it = bool(named.search((ROOT / file).read_text()))
        return file.stem != f"test_{leaf}", not names_it, file.parts[1] != room, one.seconds

    those = [one for one in known if not lines.isdisjoint(one.lines.get(mutant.file, ()))]
    # A process that is killed, or that has a profiler of its own, tells coverage nothing.
    rooms = [one for one in known if Path(one.test).parts[1] == room]
    return [one.test for one in sorted(those or rooms, key=place)]


def run_pytest(
    tests: list[str], copy: Path, timeout_s: float, *before: str
) -> subprocess.CompletedProcess[str]:
    """Run tests in a copy of the repository until one fails; `before` is what runs pytest."""
    ends_soon = () if before else ("-x",)
    command = [sys.executable, "-m", *before, "pytest", *ends_soon, "-n", "0", "-m", "not replay"]
    return subprocess.run(
        [*command, *tests, "-p", "no:cacheprovider", "--timeout", str(timeout_s)],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=10 * timeout_s,
        check=False,
    )


def first_failure(tests: list[str], copy: Path, timeout_s: float) -> str:
    """Return which of the tests fails first in a copy of the repository, "" where none does."""
    try:
        done = run_pytest(tests, copy, timeout_s)
    except subprocess.TimeoutExpired:
        return "timeout"
    failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return "" if not done.returncode else failed[0] if failed else f"exit code {done.returncode}"


def notices(mutant: Mutant, tests: list[str], copy: Path, timeout_s: float) -> str:
    """Return which of the tests notices a mutant in a copy of the repository, "" where none does.

    A test that fails without the mutant as well has noticed nothing.
    """
    file = copy / mutant.file
    whole = file.read_text()
    while tests:
        file.write_text(applied(mutant, whole))
        try:
            failed = first_failure(tests, copy, timeout_s)
        finally:
            file.write_text(whole)
        name = failed.partition("::")[0]
        if not failed or not first_failure([failed] if name in tests else tests, copy, timeout_s):
            return failed
        tests = tests[tests.index(name) + 1 :] if name in tests else []
    return ""


def copy_to(folder: Path) -> None:
    """Copy the repository with its history, and with what is not committed yet."""
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).exists():
            shutil.copy2(ROOT / name, folder / name)


def campaign(
    todo: list[Mutant], kept: Path, jobs: int, timeout_s: float, nearest: int | None
) -> dict[Mutant, str]:
    """Run the tests on each mutant; return what noticed each."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copies: SimpleQueue[Path] = SimpleQueue()
        for number in range(jobs):
            copy = Path(scratch, str(number))
            copy_to(copy)
            copies.put(copy)

        def each(file: Path, wanted: list[str], work: Callable[[str, Path], object]) -> list[Any]:
            """Do the work that is not in the file yet; return all of it, in order."""
            known = dict(map(json.loads, file.open())) if file.exists() else {}

            def one(key: str) -> None:
                copy = copies.get()
                try:
                    known[key] = work(key, copy)
                finally:
                    copies.put(copy)
                with file.open("a") as handle:
                    handle.write(json.dumps([key, known[key]]) + "\n")

            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(one, [key for key in wanted if key not in known]))
            return [known[key] for key in wanted]

        def trace(test: str, copy: Path) -> Executed:
            print(test, flush=True)
            return executed(test, copy, timeout_s)

        def noticed(key: str, copy: Path) -> str:
            mutant = Mutant(**json.loads(key))
            tests = tests_of(mutant, lines)[:nearest]
            by = notices(mutant, tests, copy, timeout_s)
            said = by or f"NOTHING NOTICES IT (of {len(tests)} files that execute it)"
            print(f"{mutant.file}:{mutant.line} {mutant.what}: {said}", flush=True)
            return by

        tests = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("test_*.py"))
        lines = [Executed(*one) for one in each(kept.with_suffix(".lines"), tests, trace)]
        by = each(kept, [json.dumps(asdict(mutant)) for mutant in todo], noticed)
    return dict(zip(todo, by, strict=True))


def main() -> int:
    """Run the campaign; the exit code is 1 where less is noticed than was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rooms", nargs="*", default=CORE, help="folders of harness/")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one test")
    parser.add_argument(
        "--nearest", type=int, help="run at most so many files of tests, the likeliest first"
    )
    parser.add_argument("--least", type=float, default=0.95, help="the share to be noticed")
    parser.add_argument(
        "--kept",
        type=Path,
        default=Path("mutants.jsonl"),
        help="what is done, and beside it, as FILE.lines, what tests execute",
    )
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    given = parser.parse_args()
    todo = chosen(given.count, given.seed, tuple(given.rooms))
    if given.list:
        for mutant in todo:
            print(f"{mutant.file}:{mutant.line} {mutant.what}: {mutant.before} -> {mutant.after}")
        return 0
    if not importlib.util.find_spec("coverage"):
        parser.error("it needs coverage, which is not installed: pip install coverage")
    results = campaign(todo, given.kept, given.jobs, given.timeout, given.nearest)
    passed = [mutant for mutant, by in results.items() if not by]
    print(f"\nnoticed: {len(results) - len(passed)} of {len(results)}")
    for mutant in sorted(passed, key=lambda one: (one.file, one.line)):
        print(f"\n{mutant.file}:{mutant.line} {mutant.what}\n- {mutant.before}\n+ {mutant.after}")
    return len(passed) > (1 - given.least) * len(results)


if __name__ == "__main__":
    sys.exit(main())
