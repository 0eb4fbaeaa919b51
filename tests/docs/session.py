"""One shell that runs commands in order, and tells each one's output, code and seconds."""

from __future__ import annotations

import itertools
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import Block
from tests.init.package import Package

_END = re.compile(r"\n<<(\d+) (\d+) ([\d.]+) ([\d.]+)>>\n")


@dataclass(frozen=True)
class Command:
    """A command that was run: its text, what it said, its exit code, and seconds."""

    text: str
    said: str
    code: int
    seconds: float


def lines(text: str) -> list[str]:
    """Return the commands of a block: a line each, with its continuations."""
    joined = re.sub(r"^\$ ", "", text, flags=re.MULTILINE)
    found = re.findall(r"(?:[^\n]*\\\n)*[^\n]+", joined)
    return [line for line in found if line.strip() and not line.lstrip().startswith("#")]


def commands(block: Block) -> list[str]:
    """Return what a reader does with a block: run it, or save it as the file of its title."""
    if block.title:
        return [f"cat >{block.title} <<'END OF FILE'\n{block.text}END OF FILE"]
    if block.runs == "python":
        return [f"python - <<'END OF FILE'\n{block.text}END OF FILE"]
    return lines(block.text)


def fresh(folder: Path) -> Package:
    """Return a new user's home, and an empty folder where they work, with the harness installed."""
    package = Package(folder, at="mypackage", git=False)
    shutil.rmtree(package.folder)
    python = package.bin / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return package


def run(package: Package, texts: list[str]) -> list[Command]:
    """Run commands in one shell, which starts in the user's folder."""
    script = "set +e; LC_ALL=C\n" + "".join(
        f"started=$EPOCHREALTIME\n{text}\n"
        f"printf '\\n<<%s %s %s %s>>\\n' {number} $? $started $EPOCHREALTIME\n"
        for number, text in enumerate(texts)
    )
    said = package.run(script, cwd=package.top)
    parts = _END.split(said)
    return [
        Command(texts[int(number)], out, int(code), float(end) - float(start))
        for out, number, code, start, end in zip(*(parts[i::5] for i in range(5)), strict=False)
    ]


def run_blocks(package: Package, todo: list[tuple[Block, list[str]]]) -> list[list[Command]]:
    """Run the commands of blocks in one shell; return those of each block."""
    ran = iter(run(package, [text for _, texts in todo for text in texts]))
    return [list(itertools.islice(ran, len(texts))) for _, texts in todo]


def failures(block: Block, ran: list[Command]) -> list[str]:
    """Return which commands of a block ended otherwise than the page says."""
    # More than one where chance decides: `<!-- exit code: 0 or 1 -->`.
    expected = [int(code) for code in (block.mark("exit code") or "0").split(" or ")]
    return [
        f"{block.where}: `{command.text}` ended with {command.code}:\n{command.said}"
        for command in ran
        if command.code not in (expected if command is ran[-1] else [0])
    ]
