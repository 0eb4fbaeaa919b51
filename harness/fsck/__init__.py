"""What in a results tree is damaged, foreign or left over, and the repair of what can be."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from harness.errors import HarnessError, UsageError
from harness.frame import asv_results
from harness.records import git, json_file, kept, signatures
from harness.records.files import is_left
from harness.records.schema import Problems, read_file
from harness.records.store import is_tree
from harness.verdicts.error_rates import ErrorRates
from harness.verdicts.live.rounds import STATE, LiveState
from harness.watch import temporary
from harness.watch.log_file import clean

ASIDE = ".damaged"
"""Ends the name of a file that was put aside: no reader looks at it."""


class Fault(msgspec.Struct):
    """Something that is not as it should be."""

    path: str
    state: str
    """`damaged`, `foreign`, `not signed` or `left over`."""
    what: str
    remedy: str
    repaired: bool = False


class TreeCheck(msgspec.Struct):
    """What was looked at, and what was found."""

    files: int = 0
    findings: list[Fault] = []

    @property
    def open(self) -> list[Fault]:
        """What is still to be done."""
        return [one for one in self.findings if not one.repaired]


class FileKind(msgspec.Struct, frozen=True):
    """The files of one kind in a results tree."""

    patterns: tuple[str, ...]
    """Below the tree."""
    check: Callable[[Path], str]
    """Returns what is wrong with a file, or raises it; "" for a good one."""
    remedy: str
    derived: bool = False
    """Whether it can be made again of what else is there, so that it may be put aside."""


def _records(path: Path) -> str:
    problems = Problems()
    places = {record.machine for record in read_file(path, problems)}
    home, said = path.parents[1].name, [problems.summary()]
    if places and home not in places:
        said.append(f"records of {', '.join(sorted(places))} in the folder of {home}")
    return "; ".join(filter(None, said))


def _asv(path: Path) -> str:
    problems = Problems()
    if path.name in ("benchmarks.json", "machine.json"):
        json_file.decode(json_file.data(path), dict)
    else:
        asv_results.read([path], (), problems)
    return "; ".join(problems.files)


def _decoded(kind: type) -> Callable[[Path], str]:
    def check(path: Path) -> str:
        json_file.read(path, kind)
        return ""

    return check


def _program(path: Path) -> str:
    found = kept.read(path.parent, path.name.removesuffix(".json.gz"))
    return "another schema version" if found is None else ""


def _night(path: Path) -> str:
    """Look at a night's state, or at a table of it, which is in a folder of its name."""
    with contextlib.suppress(ModuleNotFoundError):
        from harness.nightly import state, verdicts  # the nights can be left out

        if path.parent.name == "nights":
            state.Nights(path.parents[2], path.parents[1].name).read(path.stem)
        else:
            verdicts.read_rows(path)
    return ""


def _placement(path: Path) -> str:
    with contextlib.suppress(ModuleNotFoundError):
        from harness.fleet.tasks import read_placement  # so can fleets

        read_placement(path.parent)
    return ""


KINDS = (
    FileKind(
        ("*/records/*.jsonl", "*/live/*/*/*/*/records/*.jsonl"),
        _records,
        "what is lost is measured again by the same `harness run`; what is damaged is left out",
    ),
    FileKind(("*/*.json", "benchmarks.json"), _asv, "`asv run` writes it again; or remove it"),
    FileKind(
        ("*/aa/*.json5", "*/aa/*.json"),
        _decoded(ErrorRates),
        "the same `harness aa` writes it again without measuring",
        True,
    ),
    FileKind(
        ("*/programs/*.json.gz",),
        _program,
        "`harness run --fresh --keep-programs` writes it again",
        True,
    ),
    FileKind(
        ("*/nights/*.json5", "*/nights/*.json"),
        _night,
        "its records are intact; the same `harness nightly --night` does the other steps anew",
        True,
    ),
    FileKind(
        ("*/nights/*/*.json5", "*/nights/*/*.json"),
        _night,
        "`harness compare` and `harness history` write such tables",
        True,
    ),
    FileKind((f"*/live/*/{STATE}",), _decoded(LiveState), "the comparison begins anew", True),
    FileKind(("placement.json",), _placement, "restore it, or remove it to place cases anew"),
)

OTHERS = (
    *("*/nights/**/*", "**/.gitignore", "**/.gitattributes", "**/*.lock", "**/.lock"),
    f"*/{signatures.FOLDER}/*{signatures.SUFFIX}",
    *("graphs/**/*", f"**/*{ASIDE}", "**/.*.part", "README*", "*/README*"),
)
"""What else may be in a tree: logs and pages of nights, and what asv or git put there."""


def check(tree: Path, repair: bool = False) -> TreeCheck:
    """Look at every file of a results tree, and at what killed processes have left.

    Args:
        tree: a results tree.
        repair: remove what is merely left over, and put aside what is damaged and can be made
            again of what else is there.

    Raises:
        UsageError: it is no results tree.
    """
    if not is_tree(tree) or (tree / "records").is_dir():
        raise UsageError(f"{tree} is no results tree: expected a folder of machines' folders.")
    report = TreeCheck()
    seen: set[Path] = set()
    for kind in KINDS:
        for path in sorted(path for pattern in kind.patterns for path in tree.glob(pattern)):
            seen.add(path)
            report.files += 1
            if what := _wrong(kind, path):
                found = Fault(clean(str(path)), "damaged", what, kind.remedy)
                if repair and kind.derived:
                    path.rename(path.with_name(path.name + ASIDE))
                    found.repaired = True
                report.findings.append(found)
    known = seen | {path for pattern in OTHERS for path in tree.glob(pattern)}
    for path in sorted(tree.rglob("*")):
        if (path not in known or path.is_symlink()) and not path.is_dir():
            text = "a link" if path.is_symlink() else "no file of the harness or of asv"
            report.findings.append(Fault(clean(str(path)), "foreign", text, "move it elsewhere"))
    if os.environ.get(signatures.SIGNERS):
        report.findings += _unsigned(tree)
    report.findings += _left_over(tree, repair)
    return report


def _wrong(kind: FileKind, path: Path) -> str:
    try:
        return kind.check(path)
    except FileNotFoundError:  # it was removed meanwhile
        return ""
    except (HarnessError, OSError, json_file.DamagedError) as error:
        return str(error)


def _unsigned(tree: Path) -> Iterator[Fault]:
    for folder in sorted(one for one in tree.iterdir() if one.is_dir()):
        try:
            signatures.check_machine(folder)
        except signatures.SignatureError as error:
            remedy = "have whoever measured it sign it, or remove it"
            yield Fault(clean(str(folder)), "not signed", str(error), remedy)


def _left_over(tree: Path, repair: bool) -> Iterator[Fault]:
    for what, paths in (
        ("a file that was being written", filter(is_left, tree.rglob(".*.part"))),
        ("a temporary folder", temporary.left_over()),
        ("what git knows of a worktree that is gone", git.left_worktrees(tree)),
    ):
        for path in list(paths):
            if repair and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif repair:
                path.unlink(missing_ok=True)
            remedy = "`harness fsck --repair` removes it"
            yield Fault(clean(str(path)), "left over", what, remedy, not path.exists())
