"""Who makes Python's calls while JAX traces and lowers: by line of the user's, by equation.

A call belongs to the innermost frame of the user's on the stack, at the line where that is. What
JAX does for one equation (its lowering rule, its transposition) belongs to the equation, under the
lines of the user's that made it. The rest belongs to the stage itself.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from types import FrameType
from typing import Any

import msgspec

from harness.program.calls import heard
from harness.program.compiler.places import EQUATION_NAME, LIBRARY, OURS, USERS, Codes, Place
from harness.program.jaxpr import nested


class CallBranch(msgspec.Struct):
    """What one line, or one equation, of one place of the tree calls."""

    name: str
    """Of the function that the line is in; of the primitive of an equation."""
    file: str
    """Where the line is; "" for an equation, and for the stage."""
    line: int
    count: int
    """Runs of the function that came to the line; turns of JAX's at such an equation."""
    calls: int
    """Of Python and C functions, with what is inside of it; equal in every process."""
    own_calls: int
    wall_s: float
    """With what is inside of it; a share of the stage's, as :func:`callers` finds it."""
    own_wall_s: float
    inside: list[CallBranch] = []


class CallSum(msgspec.Struct):
    """What a line, a function or a primitive calls in all places of the tree together."""

    name: str
    file: str
    line: int
    calls: int = 0
    """With what is inside of it, once where it is inside of itself."""
    own_calls: int = 0
    wall_s: float = 0.0
    own_wall_s: float = 0.0


@dataclass(slots=True, eq=False)
class _Node:
    name: str
    file: str = ""
    line: int = 0
    count: int = 0
    calls: int = 0
    seconds: float = 0.0
    spans: int = 0
    """From one call or return to the next; `seconds` is their sum."""
    made: dict[int, object] = field(default_factory=dict)
    """Where the equations of a primitive were made, each once."""
    inside: dict[tuple[str, str, int], _Node] = field(default_factory=dict)

    def under(self, name: str, file: str = "", line: int = 0) -> _Node:
        node = self.inside.get((name, file, line))
        if node is None:
            node = self.inside[name, file, line] = _Node(name, file, line)
        return node


class _Level:
    """A frame of the stack that calls are given to, and the node that they are given to now."""

    def __init__(self, frame: FrameType, around: _Level | None, is_users: bool) -> None:
        self.frame, self.around, self.is_users = frame, around, is_users
        self.parent: _Node = _Node("") if around is None else around.node
        self.outer: tuple[Place, ...] = around.path if around else ()
        self.node: _Node = self.parent
        self.path: tuple[Place, ...] = self.outer
        """The lines of the user's from the outermost to this frame's."""
        self.equation: object = None if around is None or is_users else around.equation
        self.holds = False
        """Its equation holds jaxprs, whose equations are inside of it."""
        self.at = -1
        self.seen: set[int] = set()

    def now(self, codes: Codes) -> _Node:
        """Return the node of the line or equation that the frame is at."""
        at = self.frame.f_lasti
        if at != self.at:
            self.at = at
            if self.is_users:
                place = codes.place(self.frame.f_code, at)
                self.path = (*self.outer, place)
                self.node = self.parent.under(*place)
                if id(self.node) not in self.seen:
                    self.seen.add(id(self.node))
                    self.node.count += 1
            elif self.around:
                self._equation(self.frame.f_locals.get(EQUATION_NAME), codes)
        return self.node

    def _equation(self, equation: Any, codes: Codes) -> None:
        if equation is self.equation:
            return
        about = getattr(equation, "source_info", None)
        if about is None:  # before the first, or no equation at all
            return
        self.equation = equation
        self.holds = any(True for value in equation.params.values() for _ in nested(value))
        base = self
        while base.around is not None:
            base = base.around
            if base.is_users or base.holds:
                break
        path, self.node = codes.made_at(about.traceback), base.node
        # JAX's tracebacks begin where the jaxpr does: they may go on from the lines around.
        shared = next(n for n in range(len(path), -1, -1) if path[:n] == base.path[-n:] or not n)
        for place in path[shared:]:
            self.node = self.node.under(*place)
        self.path = base.path + path[shared:]
        self.node = self.node.under(str(equation.primitive))
        # Several parts of JAX look at an equation, some at a copy, which has its traceback.
        self.node.made[id(about.traceback)] = about.traceback
        self.node.count = len(self.node.made)


def callers(stage: str, step: Callable[[], object], seconds: float) -> CallBranch:
    """Run a step and return who makes its calls, as a tree of the user's lines.

    Args:
        stage: what the tree is called.
        step: traces, or lowers, once.
        seconds: that the step takes without counting: the times of the tree sum to it.

    The calls are those of :func:`harness.program.calls.calls`. Times are measured between one call
    or return and the next; the shortest such time is what the counting itself costs, and is taken
    from each. What is left is scaled to `seconds`.
    """
    codes = Codes()
    stack = [_Level(sys._getframe(), None, is_users=False)]
    root, kind_of = stack[0].node, codes.known
    root.name, root.count = stage, 1
    last, least = perf_counter(), math.inf

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal last, least
        span = perf_counter() - last
        level = stack[-1]
        level.node.seconds += span
        level.node.spans += 1
        least = min(least, span)
        if event == "call":
            kind = kind_of(frame.f_code)[0]
            if kind != OURS:
                level.now(codes).calls += 1
                if kind != LIBRARY:
                    stack.append(_Level(frame, level, kind == USERS))
        elif event == "c_call":
            if kind_of(frame.f_code)[0] != OURS:
                level.now(codes).calls += 1
        elif frame is level.frame and event == "return":
            stack.pop()
        last = perf_counter()

    heard(step, note)
    own = {id(node): node.seconds - node.spans * least for node in _nodes(root) if node.spans}
    scale = seconds / sum(own.values())
    return _branch(root, {key: value * scale for key, value in own.items()})


def _nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for each in node.inside.values():
        yield from _nodes(each)


def _branch(node: _Node, own: dict[int, float]) -> CallBranch:
    inside = sorted(
        (_branch(each, own) for each in node.inside.values()), key=lambda one: -one.calls
    )
    place = (node.name, node.file, node.line, node.count)
    calls, own_s = node.calls, own.get(id(node), 0.0)
    all_calls = calls + sum(one.calls for one in inside)
    whole_s = own_s + sum(one.wall_s for one in inside)
    return CallBranch(*place, all_calls, calls, whole_s, own_s, inside)


def lines(tree: CallBranch) -> list[CallSum]:
    """Return what each line of the user's calls; own is with what JAX does for its equations."""
    return _sums(tree, lambda one: Place(one.name, one.file, one.line) if one.file else None)


def functions(tree: CallBranch) -> list[CallSum]:
    """Return what each function of the user's calls; its line is 0."""
    return _sums(tree, lambda one: Place(one.name, one.file, 0) if one.file else None)


def primitives(tree: CallBranch) -> list[CallSum]:
    """Return what the rules of each primitive call."""
    return _sums(tree, lambda one: Place(one.name, "", 0) if not one.file else None)


def _sums(tree: CallBranch, key_of: Callable[[CallBranch], Place | None]) -> list[CallSum]:
    """Sum a tree by a key, the one with the most own calls first; what has none is its parent's."""
    sums: dict[Place, CallSum] = {}
    around: dict[Place, int] = defaultdict(int)

    def add(one: CallBranch, outer: Place | None) -> None:
        key = key_of(one)
        owner = key or outer
        if owner is not None:
            kept = sums.setdefault(owner, CallSum(*owner))
            kept.own_calls += one.own_calls
            kept.own_wall_s += one.own_wall_s
        if key is not None:
            if not around[key]:
                sums[key].calls += one.calls
                sums[key].wall_s += one.wall_s
            around[key] += 1
        for each in one.inside:
            add(each, owner)
        if key is not None:
            around[key] -= 1

    for each in tree.inside:
        add(each, None)
    return sorted(sums.values(), key=lambda one: (-one.own_calls, one.name, one.line))
