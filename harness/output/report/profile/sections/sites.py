"""Which lines of the program led to builds: a tree of stack frames."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from harness.output.report.content import Content, Node, Section
from harness.profiles.names import line_text
from harness.records.units import counted, seconds_text

if TYPE_CHECKING:
    from harness.output.report.profile.tables import Shown
    from harness.profiles.recorded import Recorded

MOST_NODES = 800
"""Lines of the tree: those with the most seconds, and what holds them."""

OPEN_SHARE = 0.1
"""A line is open from the start if it holds this share of all seconds."""


class CallSite(NamedTuple):
    """A line of a stack, or the function at its end."""

    text: str
    file: str
    soft: bool
    """Whether it is a library's."""


@dataclass
class Branch:
    """A step, and what came of it."""

    step: CallSite
    ns: int = 0
    builds: int = 0
    below: dict[CallSite, Branch] = field(default_factory=dict)


def grown(profile: Recorded) -> Branch:
    """Return all builds as a tree: frames, the outermost first, and the function at the end."""
    root = Branch(CallSite("", "", False))
    steps_of: dict[tuple[str, int], tuple[CallSite, ...]] = {}
    for built in profile.builds:
        key = (built.process.file, built.line.stack)
        if key not in steps_of:
            cwd = built.process.started.cwd
            steps_of[key] = tuple(
                CallSite(
                    f"{frame.function}  {line_text(frame.file, frame.line, cwd)}",
                    f"{frame.file}:{frame.line}",
                    frame.origin != "program",
                )
                for frame in built.frames
            )
        function = built.function
        where = f"{function.file}:{function.line}" if function.file else ""
        last = CallSite(f"builds {function.name}", where, function.origin != "program")
        here, path = root, [root]
        for step in (*steps_of[key], last):
            here = here.below.setdefault(step, Branch(step))
            path.append(here)
        for branch in path:
            branch.ns += built.build_ns
            branch.builds += 1
    return root


def nodes(root: Branch, most: int = MOST_NODES) -> tuple[Node, ...]:
    """Return the tree as the page shows it: the largest first, chains without a fork in one line.

    Of a great tree the `most` largest lines are kept; a line under each parent says what is left
    out there.
    """
    return _children(root, _largest(root, most), root.ns or 1)


def _largest(root: Branch, most: int) -> set[int]:
    """Return the branches with the most seconds, each with its parents; a chain takes one line."""
    every = sorted(_below(root), key=lambda branch: -branch.ns)
    lines = itertools.accumulate(len(branch.below) != 1 for branch in every)
    return {id(branch) for branch, line in zip(every, lines, strict=True) if line <= most}


def _below(branch: Branch) -> Iterator[Branch]:
    for child in branch.below.values():
        yield child
        yield from _below(child)


def _children(branch: Branch, kept: set[int], whole: int) -> tuple[Node, ...]:
    branches: list[Branch] = []
    left: list[Branch] = []
    for child in sorted(branch.below.values(), key=lambda child: -child.ns):
        (branches if id(child) in kept else left).append(child)
    made = [_node(child, kept, whole) for child in branches]
    if left:
        ns, builds = sum(child.ns for child in left), sum(child.builds for child in left)
        made.append(Node(f"{len(left)} more", _value(ns, builds), share=ns / whole, soft=True))
    return tuple(made)


def _node(branch: Branch, kept: set[int], whole: int) -> Node:
    steps = [branch.step]
    while len(branch.below) == 1:
        (only,) = branch.below.values()
        if id(only) not in kept:
            break
        branch = only
        steps.append(branch.step)
    own = [step for step in steps if not step.soft] or steps[-1:]
    share = branch.ns / whole
    return Node(
        " › ".join(step.text for step in own),
        _value(branch.ns, branch.builds),
        "\n".join(f"{step.text.partition('  ')[0]}  {step.file}" for step in steps),
        share,
        all(step.soft for step in steps),
        share >= OPEN_SHARE,
        _children(branch, kept, whole),
    )


def _value(ns: int, builds: int) -> str:
    return f"{seconds_text(ns / 1e9)} · {counted(builds, 'build')}"


def _content(shown: Shown) -> Content | None:
    root = grown(shown.profile)
    return Content(tree=nodes(root)) if root.builds else None


SECTION = Section(
    name="sites",
    title="By call site",
    intro="Seconds of tracing, lowering, compiling and loading, by the calls that led to them. "
    "Lines of libraries are left out where lines of the program stand beside them; point at a line "
    "for all of them.",
    content=_content,
    missing="Nothing was built.",
    command="harness profile -- python PROGRAM",
)
