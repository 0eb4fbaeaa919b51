"""One compile as a tree: every event under the one that it happens in, on whichever thread.

Each moment of the compile is given to the events that work in it: the innermost one of each thread
that does not wait for another thread; where several threads work at once, in equal shares. So the
wall times of all nodes sum to that of the compile; the times of threads sum to what its threads
were busy.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from harness.program.compiler.groups import REST, group_of

ROOT = "backend_compile_and_load"
"""JAX's own event around a compile (jax 0.10 to 0.12)."""


@dataclass(frozen=True, slots=True)
class CompileEvent:
    """One event of one thread."""

    thread: str
    begin_ns: int
    end_ns: int
    name: str
    module: str = ""
    """The kernel that is generated, or the module that is optimised."""
    operations: int = 0
    """Of the kernel, where XLA says it."""
    is_pipeline: bool = False
    """It is a pipeline of passes over the module."""


@dataclass(slots=True, eq=False)
class EventNode:
    """An event in its place."""

    event: CompileEvent
    group: str = REST
    part: str = ""
    """Of its group."""
    wall_ns: float = 0.0
    """Its own share of the compile's wall time: without what is inside of it."""
    busy_ns: float = 0.0
    """What its own thread worked for it, beside others: waiting for another thread is not."""
    children: list[EventNode] = field(default_factory=list)

    def all(self) -> Iterator[EventNode]:
        """Yield it, and all that is inside of it."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += node.children


def build(events: Sequence[CompileEvent]) -> EventNode | None:
    """Return the root of the compile that the events are of; None where there was none.

    Args:
        events: of each thread by their beginning, the longer one first.
    """
    threads = {
        name: _nested(list(each))
        for name, each in itertools.groupby(events, key=lambda event: event.thread)
    }
    roots = [node for tops in threads.values() for node in tops if node.event.name.startswith(ROOT)]
    if not roots:
        return None
    root = max(roots, key=lambda node: node.event.end_ns - node.event.begin_ns)
    begin, end = root.event.begin_ns, root.event.end_ns
    tops = {
        name: [
            node
            for node in nodes
            if node is root or (node.event.begin_ns >= begin and node.event.end_ns <= end)
        ]
        for name, nodes in threads.items()
    }
    hosts = _hosts({name: nodes for name, nodes in tops.items() if nodes}, root)
    for name, host in hosts.items():
        for node in tops[name]:
            _deepest(tops[host], node.event).children.append(node)
    _share(root, hosts)
    _name_groups(root)
    return root


def _nested(events: Sequence[CompileEvent]) -> list[EventNode]:
    """Return the outermost events of a thread, with the others inside of them."""
    tops: list[EventNode] = []
    stack: list[EventNode] = []
    for event in events:
        while stack and event.begin_ns >= stack[-1].event.end_ns:
            stack.pop()
        node = EventNode(event)
        (stack[-1].children if stack else tops).append(node)
        stack.append(node)
    return tops


def _hosts(tops: dict[str, list[EventNode]], root: EventNode) -> dict[str, str]:
    """Return the thread that each works for: the innermost in whose events all of its own lie."""
    ordered = sorted(tops, key=lambda name: tops[name][0].event.begin_ns)
    main = root.event.thread
    hosts: dict[str, str] = {}
    for name in ordered:
        if name == main:
            continue
        able = [
            other
            for other in (main, *hosts)
            if other == main or all(_holder(tops[other], node.event) for node in tops[name])
        ]
        hosts[name] = max(able, key=lambda other: tops[other][0].event.begin_ns)
    return hosts


def _holder(nodes: Sequence[EventNode], event: CompileEvent) -> EventNode | None:
    """Return the first of some events in which another one lies."""
    for node in nodes:
        if node.event.begin_ns <= event.begin_ns and event.end_ns <= node.event.end_ns:
            return node
    return None


def _deepest(tops: Sequence[EventNode], event: CompileEvent) -> EventNode:
    """Return the innermost event of a thread that holds another thread's."""
    thread = tops[0].event.thread
    found = node = _holder(tops, event)
    while node is not None:
        found = node
        node = _holder([one for one in node.children if one.event.thread == thread], event)
    assert found is not None
    return found


def _share(root: EventNode, hosts: dict[str, str]) -> None:
    """Give each moment of the compile to the events that work in it."""
    edges: list[tuple[int, int, EventNode]] = []
    for node in root.all():
        edges += [(node.event.begin_ns, 1, node), (node.event.end_ns, 0, node)]
    # Of one moment, what ends goes before what begins, inner before outer, outer before inner.
    edges.sort(
        key=lambda edge: (
            edge[0],
            edge[1],
            -edge[2].event.begin_ns if not edge[1] else -edge[2].event.end_ns,
        )
    )
    stacks: dict[str, list[EventNode]] = defaultdict(list)
    working: list[EventNode] = []
    before = root.event.begin_ns
    for moment, begins, node in edges:
        if moment > before and working:
            for one in working:
                one.wall_ns += (moment - before) / len(working)
                one.busy_ns += moment - before
        before = moment
        stack = stacks[node.event.thread]
        if begins:
            stack.append(node)
        elif node in stack:
            stack.remove(node)
        waiting = {hosts[name] for name, stack in stacks.items() if stack and name in hosts}
        working = [stack[-1] for name, stack in stacks.items() if stack and name not in waiting]


def _name_groups(root: EventNode) -> None:
    todo = [(root, (REST, ""))]
    while todo:
        node, parent = todo.pop()
        node.group, node.part = group_of(node.event.name, parent, node.event.is_pipeline)
        todo += [(child, (node.group, node.part)) for child in node.children]
