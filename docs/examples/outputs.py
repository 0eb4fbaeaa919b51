"""Profile the programs in this folder, and put what is said into docs/cookbook-profile.md.

Needs the packages that the programs name, beside jax-harness itself:

    python -m pip install equinox flax optax numpyro blackjax diffrax
    PYTHONPATH=$PWD python docs/examples/outputs.py

A block of the page that follows `<!-- profile: PROGRAM.py OPTIONS -->` is what
`harness profile -- python PROGRAM.py OPTIONS` says; the table after `<!-- table -->` compares all.
"""

import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import harness

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "cookbook-profile.md"
BLOCK = re.compile(r"(<!-- profile: (.*?) -->\n+```\n).*?(```\n)", re.DOTALL)
TABLE = re.compile(r"(<!-- table -->\n).*?(<!-- end -->\n)", re.DOTALL)
PACKAGES = ("jax", "equinox", "flax", "optax", "numpyro", "blackjax", "diffrax")


def profiled(words, folder):
    """Run a program under `harness profile`; return what was said, and the row of the table."""
    command = [sys.executable, "-m", "harness", "profile", "-o", folder, "--", sys.executable]
    print("harness profile -- python", words, flush=True)
    subprocess.run([*command, *words.split()], cwd=HERE, check=True, capture_output=True)
    show = [sys.executable, "-m", "harness", "profile", "show", folder]
    said = subprocess.run(show, cwd=HERE, check=True, capture_output=True, text=True)
    lines = said.stdout.partition("\nNext: ")[0].replace(folder, "prof")
    profile = harness.load_profile(folder)
    spent = profile.run.end_ns - profile.run.begin_ns
    building = sum(built.build_ns for built in profile.builds)
    compiles = sum(built.times("compile") for built in profile.builds)
    row = f"| `{words}` | {compiles} | {building / 1e9:.1f} s | {spent / 1e9:.1f} s |"
    return lines.rstrip() + "\n", row


def main():
    """Run all, and write the page anew."""
    rows = []

    def block(match):
        with tempfile.TemporaryDirectory() as folder:
            said, row = profiled(match[2], str(Path(folder) / "prof"))
        rows.append(row)
        return match[1] + said + match[3]

    text = BLOCK.sub(block, PAGE.read_text())
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    head = "| command | programs compiled | building | wall |\n|---|---|---|---|"
    where = f"One run each, {os.cpu_count()} cores; {versions}:"
    table = "\n".join(["", where, "", head, *rows, "", ""])
    PAGE.write_text(TABLE.sub(lambda match: match[1] + table + match[2], text))


if __name__ == "__main__":
    main()
