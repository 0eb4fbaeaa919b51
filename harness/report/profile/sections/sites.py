"""Which lines of the program led to builds: a tree of stack frames."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from harness.profiles.names import frame_text
from harness.records.units import counted, seconds_text
from harness.report.content import Content, Node, Section

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded
    from harness.report.profile.shown import Shown

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
                    f"{frame.function}  {frame_text(frame, cwd)}",
                    f"{frame.file}:{frame.line}",
                    frame.origin != "program",
                )
                for frame in built.frames
            )
        function = built.function
        where = f"{function.file}:{function.line}" if function.file else ""
        last = CallSite(f"builds {function.name}", where, function.origin != "program")
        here = root
        _add(here, built.build_ns)
        for step in (*steps_of[key], last):
            here = here.below.setdefault(step, Branch(step))
            _add(here, built.build_ns)
    return root


def _add(branch: Branch, ns: int) -> None:
    branch.ns += ns
    branch.builds += 1


def nodes(root: Branch, most: int = MOST_NODES) -> tuple[Node, ...]:
    """Return the tree as the page shows it: the largest first, chains without a fork in one line.

    Of a great tree the `most` largest lines are kept; a line under each parent says what is left
    out there.
    """
    kept = _largest(root, most)
    return _children(root, kept, root.ns or 1)


def _largest(root: Branch, most: int) -> set[int]:
    """Return the branches with the most seconds, each with its parents."""
    kept: set[int] = set()
    waiting = [(-child.ns, number, child) for number, child in enumerate(root.below.values())]
    heapq.heapify(waiting)
    number = len(waiting)
    lines = 0
    while waiting and lines < most:
        _, _, branch = heapq.heappop(waiting)
        kept.add(id(branch))
        lines += len(branch.below) != 1  # a chain takes one line
        for child in branch.below.values():
            number += 1
            heapq.heappush(waiting, (-child.ns, number, child))
    return kept


def _children(branch: Branch, kept: set[int], whole: int) -> tuple[Node, ...]:
    found: list[Branch] = []
    left: list[Branch] = []
    for child in sorted(branch.below.values(), key=lambda child: -child.ns):
        (found if id(child) in kept else left).append(child)
    made = [_node(child, kept, whole) for child in found]
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
