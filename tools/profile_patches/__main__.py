"""Patch small programs, public ones and traps; print which are patched, and what that saves.

    python -m tools.profile_patches [--checkouts FOLDER] [NAME ...]

programs.txt and avoidable.csv were written before `harness profile patch` was. A program is right
if what is mechanical is patched, and refused if that is expected; a trap is right if it is refused
with its reason. Every patch is applied with `git apply`, and the program runs once more. The exit
code is the number of wrong ones.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.output.profile_patch import reason_text
from harness.patches import proof as patches
from harness.profiles.recorded import read
from tools.profile_corpus.__main__ import PYTEST, SURROUNDINGS, table

HERE = Path(__file__).parent
KINDS = {
    "weak": patches.TYPED,
    "recreated": patches.ONCE,
    "once": patches.ONCE,
    "static": patches.DYNAMIC,
    "loop": (*patches.ITERATED, "JH088"),
    "size": patches.SIZED,
    "cache": (),
    "none": (),
}
"""By kind of program, the remedies that are counted."""


class Small(NamedTuple):
    """A program: its name, its kind, what is expected, and its code; public ones have none."""

    name: str
    kind: str
    expected: str
    code: str


def programs(file: str) -> Iterator[Small]:
    for part in (HERE / file).read_text(encoding="utf-8").split("=== ")[1:]:
        head, _, code = part.partition("\n")
        name, kind, *more = [word.strip() for word in head.split("|")]
        kind, _, expected = kind.partition(" ")
        yield Small(name, kind, (more or [expected])[0], code)


def command(small: Small, folder: Path, checkouts: Path | None) -> list[str] | None:
    """Put a program into a folder of its own; return its command, None of one that is not here."""
    if small.code:
        (folder / "program.py").write_text(small.code, encoding="utf-8")
        return [sys.executable, "program.py"]
    if checkouts is None:
        return None
    entry = next(one for one in table()["program"] if one["name"] == small.name)
    path, *arguments = shlex.split(entry["run"])
    file = checkouts / path
    shutil.copytree(file.parent, folder, dirs_exist_ok=True)
    test = file.stem.startswith("test_") or file.stem.endswith("_test")
    python = checkouts / "jax-0.10.2" / "bin" / "python"
    return [str(python), *(PYTEST if test else ()), file.name, *arguments]


def result(small: Small, scratch: Path, checkouts: Path | None) -> tuple[str, float, float]:
    """Return what came of a program, the avoidable seconds, and those saved."""
    folder = scratch / "program"
    folder.mkdir()
    words = command(small, folder, checkouts)
    if words is None:
        return "left out", 0.0, 0.0
    environment = {**os.environ, **SURROUNDINGS}
    profiled = [sys.executable, "-P", "-m", "harness", "profile", "-o", str(scratch / "profile")]
    done = subprocess.run(
        [*profiled, "--", *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1:]}", 0.0, 0.0
    os.environ.update(SURROUNDINGS)
    profile = read(scratch / "profile")
    program = patches.program_of(profile)
    proposed, left = patches.proposals(profile, program)
    mine = KINDS[small.kind]
    proposed = [one for one in proposed if one.finding.remedy.id in mine]
    left = [one for one in left if one.finding.remedy.id in mine]
    every = [each for one in proposed for each in one.findings] + [one.finding for one in left]
    avoidable = sum(finding.seconds for finding in every)
    proof = patches.Patches([], [])
    if proposed:
        proof = patches.prove(program, proposed, scratch / "runs", lambda _: None)
    left += proof.left
    reasons = "; ".join(f"{one.reason} ({reason_text(one)})" for one in left)
    if not proof.proven:
        return (f"refused: {reasons}" if left else "nothing"), avoidable, 0.0
    saved = sum(one.saved_s for one in proof.proven)
    for tool in (["git", "init", "-q"], ["git", "apply", "-"]):
        subprocess.run(tool, cwd=folder, input=proof.diff, text=True, check=True)
    again = subprocess.run(words, cwd=folder, env=environment, capture_output=True)
    applied = "" if again.returncode == 0 else ", and fails once it is applied"
    return f"patched{applied}" + (f"; refused: {reasons}" if reasons else ""), avoidable, saved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--checkouts", type=Path, help="as for tools.profile_corpus")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    wrong, all_avoidable, all_saved = 0, 0.0, 0.0
    for file in ("programs.txt", "traps.txt"):
        for small in programs(file):
            if options.names and small.name not in options.names:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                text, avoidable, saved = result(small, Path(scratch), options.checkouts)
            if file == "traps.txt":
                is_right = text.startswith(f"refused: {small.expected} ")
            else:
                refused = small.expected == "refused" or small.kind in ("none", "cache")
                is_right = text.startswith(("refused", "nothing") if refused else "patched")
                all_avoidable, all_saved = all_avoidable + avoidable, all_saved + saved
            is_right = is_right or text == "left out"
            wrong += not is_right
            print(
                f"{'right' if is_right else 'WRONG':5} {small.name}: {text}; "
                f"{saved:.2f} of {avoidable:.2f} s",
                flush=True,
            )
    print(f"saved {all_saved:.2f} of {all_avoidable:.2f} avoidable seconds; {wrong} wrong")
    sys.exit(min(wrong, 100))


if __name__ == "__main__":
    main()
