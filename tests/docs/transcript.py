"""The road from the first page to a verdict: every command of docs/getting-started.md, in order.

`python -m tests.docs.transcript` runs them in an empty folder and prints what each took; `--write`
puts what they said into the page, and the verdict into the README.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.docs import matching, session
from tests.docs.pages import ROOT, Block, blocks

PAGE = "docs/getting-started.md"

_BUSY = ("harness: this machine is loaded: ", "harness: machine busy: ")


@dataclass(frozen=True)
class Step:
    """A block of the page, the commands that it was, and the block that shows what they said."""

    block: Block
    commands: list[session.Command]
    shown: Block | None

    @property
    def said(self) -> str:
        """What all commands of the block said, but for how busy the machine happened to be."""
        lines = "".join(command.said for command in self.commands).splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith(_BUSY))

    @property
    def seconds(self) -> float:
        """What all commands of the block took."""
        return sum(command.seconds for command in self.commands)

    def problems(self) -> list[str]:
        """Return where the commands did not what the page says."""
        wrong = session.failures(self.block, self.commands)
        if self.shown is None:
            return wrong
        lines = matching.differences(self.shown.text, self.said)
        if lines:
            wrong.append(f"{self.shown.where}: not what was said:\n" + "\n".join(lines))
        return wrong


def replay(folder: Path, text: str | None = None) -> list[Step]:
    """Do what the page says in an empty folder below `folder`; `text` stands for the page."""
    found = blocks(PAGE, text)
    todo = [
        (block, after if after and after.language == "text" else None)
        for block, after in itertools.zip_longest(found, found[1:])
        if (block.runs or block.title) and block.mark("not executed") is None
    ]
    commands = [(block, session.commands(block)) for block, _ in todo]
    ran = session.run_blocks(session.fresh(folder), commands)
    return [Step(block, own, shown) for (block, shown), own in zip(todo, ran, strict=True)]


def written(steps: list[Step]) -> str:
    """Return the page with what the commands said."""
    page = (ROOT / PAGE).read_text(encoding="utf-8").splitlines(keepends=True)
    # The page may have been edited while its commands ran.
    shown = [block for block in blocks(PAGE) if block.language == "text"]
    said = [step.said for step in steps if step.shown is not None]
    for block, text in reversed(list(zip(shown, said, strict=True))):
        page[block.line : block.end - 1] = [matching.shown(text)]
    return "".join(page)


def with_verdict(readme: str) -> str:
    """Return the README with the first rows of the verdict that the page shows, without reasons."""
    (verdict,) = [
        step
        for command, step in itertools.pairwise(blocks(PAGE))
        if command.text == "harness compare HEAD~1 HEAD\n"
    ]
    lines = verdict.text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("workload"))
    header, *rows = lines[at:]
    width = header.index("reason")
    rows = list(itertools.takewhile(lambda row: row[width:].strip(), rows))
    kept = "".join(line[:width].rstrip() + "\n" for line in (header, *rows[:6]))
    start = readme.index("```text\n") + len("```text\n")
    return readme[:start] + kept + readme[readme.index("```", start) :]


def main(write: bool) -> int:
    """Run the page, print each block's seconds, and return 1 where it says something else."""
    with tempfile.TemporaryDirectory(prefix="harness-page-") as folder:
        steps = replay(Path(folder))
    for step in steps:
        print(
            f"{step.seconds:6.1f} s  {step.block.where}  {step.commands[-1].text.splitlines()[0]}"
        )
    print(f"{sum(step.seconds for step in steps):6.1f} s  in all")
    if write and any("Machine busy: " in step.said for step in steps):
        sys.exit("Not written: other processes were busy meanwhile. Try again when they are not.")
    if write:
        (ROOT / PAGE).write_text(written(steps), encoding="utf-8")
        readme = ROOT / "README.md"
        readme.write_text(with_verdict(readme.read_text("utf-8")), encoding="utf-8")
        return 0
    problems = [problem for step in steps for problem in step.problems()]
    print("\n".join(problems))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
