"""What `harness profile` says first of other people's programs, against what is true of them.

    python -m tests.profile_corpus --checkouts FOLDER [--python PYTHON] [NAME ...]

The programs, and what an expert says of each, are in programs.toml; FOLDER holds a checkout of each
repository named there, and PYTHON's environment the libraries. Each program is run unchanged. A
finding is right if it holds all that is expected; unexplained if it names no cause; and wrong
otherwise. A program is changed if it ended otherwise than by itself, or if there is no profile. The
exit code is the number of wrong ones, 100 at most.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import harness
from harness.profiles.answer.findings import Finding, findings

# Modules are run with -P: the folder of a library's tests may hold a `typing.py` of its own.
TABLE = Path(__file__).with_name("programs.toml")
PYTEST = ("-P", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
SURROUNDINGS = {
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_COMPILATION_CACHE": "0",
    "MPLBACKEND": "agg",
}
VERDICTS = ("right", "wrong", "unexplained", "changed")


@dataclass(frozen=True)
class Program:
    """A program, and what its first finding holds."""

    name: str
    run: str
    """Its file, from the folder of checkouts on, and its arguments. Modules of tests: by pytest."""
    top: tuple[tuple[str, ...], ...]
    """Pieces of the first finding or its place, all of them. Of several findings that take much the
    same time, any may be the first. None: there is nothing to say."""
    limit_s: float = 300.0

    def words(self, checkouts: Path) -> tuple[Path, list[str]]:
        """Return the folder that it runs in, and what Python is given."""
        path, *arguments = shlex.split(self.run)
        file = checkouts / path
        if not file.is_file():
            raise SystemExit(f"{self.name}: there is no {file}; fetch {path.partition('/')[0]}")
        test = file.stem.startswith("test_") or file.stem.endswith("_test")
        return file.parent, [*(PYTEST if test else ()), file.name, *arguments]


def verdict(top: Finding | None, program: Program) -> str:
    """Return one of VERDICTS, except changed."""
    if top is None:
        return "wrong" if program.top else "right"
    said = f"{top.text}, {top.place}"
    if any(all(piece in said for piece in pieces) for pieces in program.top):
        return "right"
    return "unexplained" if "nothing that is recorded accounts for it" in said else "wrong"


def judged(program: Program, checkouts: Path, python: str) -> tuple[str, str]:
    """Run a program; return the verdict, and what was said first."""
    folder, words = program.words(checkouts)
    with tempfile.TemporaryDirectory() as out:
        command = [
            sys.executable,
            "-P",
            "-m",
            "harness",
            "profile",
            "-o",
            out,
            "--",
            python,
            *words,
        ]
        environment = {**os.environ, **SURROUNDINGS}
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=program.limit_s,
            )
        except subprocess.TimeoutExpired:
            return "changed", f"ran for more than {program.limit_s:.0f} s"
        if done.returncode:
            last = (done.stdout.strip().splitlines() or [""])[-1]
            return "changed", f"ended with {done.returncode}: {last}"
        found = findings(harness.load_profile(out))
    top = found[0] if found else None
    return verdict(top, program), f"{top.text}, {top.place}" if top else "nothing"


def programs(names: list[str]) -> list[Program]:
    """Return the programs of these names, or all."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["program"]
    listed = {row["name"]: Program(**{**row, "top": tuple(map(tuple, row["top"]))}) for row in rows}
    if unknown := [name for name in names if name not in listed]:
        raise SystemExit(
            f"no program {unknown[0]!r} in {TABLE.name}; there are {', '.join(listed)}"
        )
    return [listed[name] for name in names or listed]


def main() -> None:
    parser = argparse.ArgumentParser(description="Judge what harness profile says first.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="these programs only")
    parser.add_argument("--checkouts", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--python", default=sys.executable, help="has the libraries")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for program in programs(options.names):
        what, said = judged(program, options.checkouts.resolve(), options.python)
        counts[what] += 1
        print(f"{what:12}{program.name:28}{said}", flush=True)
        if what == "wrong":
            expected = " or ".join(", ".join(pieces) for pieces in program.top)
            print(f"{'':12}{'expected':28}{expected or 'nothing'}", flush=True)
    print(", ".join(f"{counts[what]} {what}" for what in VERDICTS))
    sys.exit(min(counts["wrong"], 100))


if __name__ == "__main__":
    main()
