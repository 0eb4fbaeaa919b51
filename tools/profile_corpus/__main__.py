"""What `harness profile` reports first of other people's programs, against what is true of them.

    python -m tools.profile_corpus --checkouts FOLDER --profiles FOLDER [--release RELEASE ...]
        [NAME ...]

The programs, and what is right of each, are in programs.toml; FOLDER holds their folders of
each repository named there and an environment for each release of JAX, or gets them (git, uv). Each
program is run unchanged, with the libraries as they are installed. The first finding is right if
its data are those expected; close if those of another that took at least two thirds as long are;
unexplained if it names no cause; and wrong otherwise. A program is changed if it ended otherwise
than by itself, or if there is no profile. What is among the profiles from an earlier call is judged
without another run. The exit code is the number of wrong ones, 100 at most.
"""

from __future__ import annotations

import argparse
import functools
import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import harness
from harness.profiles.finding import Finding
from harness.profiles.findings import findings
from harness.profiles.names import around_text, package_of
from tests.repositories import git

# Modules are run with -P: the folder of a library's tests may hold a `typing.py` of its own.
TABLE = Path(__file__).with_name("programs.toml")
PYTEST = ("-P", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
SURROUNDINGS = {
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_COMPILATION_CACHE": "0",
    "MPLBACKEND": "agg",
}
CLOSE = 2 / 3
SAME = ("kind", "count", "reached", "caller", "when", "recreated")
VERDICTS = ("right", "close", "wrong", "unexplained", "changed")


@functools.cache
def table() -> dict[str, Any]:
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))


class Program(NamedTuple):
    """A program, and what its first finding is."""

    name: str
    run: str
    """Its file, from the folder of checkouts on, and its arguments. Modules of tests: by pytest."""
    top: Sequence[Mapping[str, Any]]
    """Values of :func:`data_of` the first finding, all of them. Of several findings that take much
    the same time, any may be the first. Empty: there is nothing to report."""
    limit_s: float = 300.0

    def words(self, checkouts: Path) -> tuple[Path, list[str]]:
        """Return the folder that it runs in, and what Python is given."""
        path, *arguments = shlex.split(self.run)
        file = checkouts / path
        if not file.is_file():
            raise SystemExit(f"{self.name}: there is no {file}; remove {path.partition('/')[0]}")
        test = file.stem.startswith("test_") or file.stem.endswith("_test")
        return file.parent, [*(PYTEST if test else ()), file.name, *arguments]


def data_of(finding: Finding) -> dict[str, Any]:
    """Return what programs.toml compares; `site` and `line` as the finding has them."""
    data = {name: getattr(finding, name) for name in SAME}
    function = finding.functions[0]
    data |= {
        "function": function.name,
        "library": package_of(function.file) if function.origin == "library" else "",
        "line": f"{function.file}:{function.line}",
        "given": around_text(function.around),
        "site": finding.sites,
    }
    if cause := finding.cause:
        others = [argument for argument, _ in finding.others]
        data |= {"cause": cause.kind, "argument": [cause.argument, *others]}
        data |= {"form": cause.form, "before": cause.values[0]}
    return data


def is_expected(finding: Finding, expected: Mapping[str, Any]) -> bool:
    """Return whether a finding has these values; of places, the end is compared.

    Which line of a finding took most depends on the load: it is any of them.
    """
    data = data_of(finding)
    for name, value in expected.items():
        one = data.get(name)
        if name == "site":  # a line, or any line of a file
            same = any(
                end.endswith(value) for text in one for end in (text, text.rpartition(":")[0])
            )
        elif name == "line":
            same = one.endswith(value)
        elif name == "given":  # `f at file.py:2`, any of several
            called, _, place = value.partition(" at ")
            pairs = [text.partition(" at ") for text in one.split(", ")]
            same = any(first == called and last.endswith(place) for first, _, last in pairs)
        elif name == "argument":
            same = value in (one or ())
        else:
            same = one == value
        if not same:
            return False
    return True


def verdict(found: Sequence[Finding], program: Program) -> str:
    """Return one of VERDICTS, except changed."""
    if not found or not program.top:
        return "wrong" if found or program.top else "right"
    for finding in found:
        if finding.seconds < CLOSE * found[0].seconds:
            break
        if any(is_expected(finding, one) for one in program.top):
            return "right" if finding is found[0] else "close"
    cause = found[0].cause
    return "unexplained" if cause is not None and cause.kind == "unexplained" else "wrong"


def judged(program: Program, checkouts: Path, python: str, out: Path) -> tuple[str, str]:
    """Run a program, unless its profile is there; return the verdict, and the first finding."""
    folder, words = program.words(checkouts)
    if not out.is_dir():
        profiled = [sys.executable, "-P", "-m", "harness", "profile", "-o", out, "--", python]
        options = {"cwd": folder, "env": {**os.environ, **SURROUNDINGS}, "timeout": program.limit_s}
        try:
            done = subprocess.run([*profiled, *words], capture_output=True, text=True, **options)
        except subprocess.TimeoutExpired:
            return "changed", f"ran for more than {program.limit_s:.0f} s"
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines() or [""]
            error = next((one for one in reversed(lines) if "Error" in one), lines[-1])
            return "changed", f"ended with {done.returncode}: {error.strip()}"
    profile = harness.load_profile(out)
    if profile.run is None or profile.run.exit_code:
        return "changed", f"ended with {profile.run and profile.run.exit_code}"
    found = findings(profile)
    return verdict(found, program), shown(data_of(found[0])) if found else "nothing"


def shown(data: Mapping[str, Any]) -> str:
    """Return data in one line, without what is empty."""
    return ", ".join(f"{name} = {value!r}" for name, value in data.items() if value)


def checked_out(checkouts: Path, name: str, folders: Iterable[str]) -> None:
    """Bring these folders of a repository into that of checkouts, unless it is there.

    No more of it: a test would import the library that lies beside it, and follow its settings.
    """
    address, commit = table()["checkouts"][name].split()
    if (checkouts / name).is_dir():
        return
    with tempfile.TemporaryDirectory(dir=checkouts) as scratch:
        folder = Path(scratch) / name
        folder.mkdir()
        git(folder, "init", "--quiet")
        git(folder, "remote", "add", "origin", f"https://github.com/{address}")
        git(folder, "sparse-checkout", "set", "--no-cone", *(f"/{one}/" for one in folders))
        git(folder, "fetch", "--quiet", "--depth", "1", "--filter", "blob:none", "origin", commit)
        git(folder, "checkout", "--quiet", "FETCH_HEAD")
        folder.rename(checkouts / name)


def python_of(checkouts: Path, release: str) -> str:
    """Return the interpreter of an environment with a release of JAX and the libraries."""
    folder = checkouts / f"jax-{release}"
    uv = Path(sys.executable).with_name("uv")
    if not folder.is_dir():
        version, libraries = table()["releases"][release], table()["libraries"]["install"]
        subprocess.run([uv, "venv", "--quiet", "--python", version, folder], check=True)
        install = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", folder]
        subprocess.run([*install, f"jax=={release}", *libraries], check=True)
    return str(folder / "bin" / "python")


def programs(names: list[str]) -> list[Program]:
    """Return the programs of these names, or all."""
    listed = {row["name"]: Program(**row) for row in table()["program"]}
    if unknown := [name for name in names if name not in listed]:
        known = ", ".join(listed)
        raise SystemExit(f"no program {unknown[0]!r} in {TABLE.name}; there are {known}")
    return [listed[name] for name in names or listed]


def main() -> None:
    releases = table()["releases"]
    parser = argparse.ArgumentParser(description="Judge what harness profile says first.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="these programs only")
    parser.add_argument("--checkouts", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--profiles", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--release", action="append", choices=releases, help="of JAX; default: all")
    options = parser.parse_args()
    chosen, checkouts = programs(options.names), options.checkouts.resolve()
    profiles = options.profiles.resolve()
    # A repository has all its folders from the first call on, whichever programs that one chose.
    folders = {tuple(program.run.split("/")[:2]) for program in programs([])}
    for name in sorted({program.run.partition("/")[0] for program in chosen}):
        checked_out(checkouts, name, [folder for owner, folder in folders if owner == name])
    counts: Counter[tuple[str, str]] = Counter()
    for release in options.release or releases:
        python = python_of(checkouts, release)
        for program in chosen:
            what, first = judged(program, checkouts, python, profiles / release / program.name)
            counts[release, what] += 1
            if what == "wrong":
                first += f"; expected {' or '.join(map(shown, program.top)) or 'nothing'}"
            print(f"{release:10}{what:12}{program.name:28}{first}", flush=True)
    for release in options.release or releases:
        print(f"jax {release}:", ", ".join(f"{counts[release, what]} {what}" for what in VERDICTS))
    sys.exit(min(sum(counts[release, "wrong"] for release in releases), 100))


if __name__ == "__main__":
    main()
