"""One compile as a tree: every event under the one that it happens in, on whichever thread.

Each moment of the compile is given to the events that work in it: the innermost one of each thread
that does not wait for another thread; where several threads work at once, in equal shares. So the
wall times of all nodes sum to that of the compile; the times of threads sum to what its threads
were busy.

Each event is of a group, by one table of names for all targets and releases of JAX, seen with jax
0.10.2, 0.11.2 and 0.12.0.1, compiling for cpu, gpu and tpu. What no line knows is of its parent's
group; what has no parent of a known one is `rest`, and is told.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

PASSES, FUSION, LAYOUT = "optimisation passes", "fusion", "layout"
SCHEDULING, BUFFERS = "scheduling", "buffer assignment"
FOLDING, AUTOTUNING = "constant folding", "autotuning"
GENERATION, SERIALISATION, REST = "code generation", "serialisation", "rest"
CONVERSION = "conversion and loading"
"""From JAX's module to XLA's, before its compiler begins, and the loading of what it made."""

_BEFORE = (PASSES, FUSION, LAYOUT, SCHEDULING, BUFFERS, FOLDING, AUTOTUNING)
GROUPS = (CONVERSION, *_BEFORE, GENERATION, SERIALISATION, REST)
"""All groups, in the order in which a compile goes through them."""

MLIR, LLVM, CUBIN, MOSAIC = "MLIR", "LLVM", "PTX to CUBIN", "Mosaic GPU"
REGISTERS, BUNDLES, EMITTERS = "register allocation", "scheduling and bundles", "emitters"

_GENERATION = (
    (CUBIN, r"PTX->CUBIN|ptxas|nvlink|LinkProgram"),
    (MOSAIC, r"^Compile$"),
    (MLIR, r"FusionCompiler::Compile"),
    (LLVM, r"TaskDispatcher::dispatch|JitCompiler::Compile|Compiling IR|CompileSingleModule"),
    (LLVM, r"IrCompiler|LlvmIrToPTX|CompileToPtx"),
    (REGISTERS, r"LSRAv2|[Rr]egister alloc"),
    (BUNDLES, r"XLA::TPU LLO .*scheduling|bundle packing"),
    (EMITTERS, r"XLA::TPU emitting"),
    ("", r"^Codegen\b|ThunkEmitter|CompileModuleToLlvmIr|IrEmitter"),
    ("", r"XLA::TPU (code generat|lowering|run backend|LLO|program)|CloneAsThreadSafeModule"),
)

_OTHERS = (
    (PASSES, r"^HLO |HLO passes|^run hlo|XLA::TPU (run hlo|HLO)|OptimizeHlo|RunHloPasses"),
    (AUTOTUNING, r"[Aa]utotun|algorithm-picker"),
    (FOLDING, r"constant[-_ ]folding|ConstantFolding|[Ee]valuat(e|or)"),
    (SERIALISATION, r"[Ss]erializ|ToProto|FromProto"),
    (
        BUFFERS,
        r"[Bb]uffer.?[Aa]ssign|memory space|[Mm]emory.?[Ss]pace.?[Aa]ssign|[Hh]eap.?[Ss]imul",
    ),
    (SCHEDULING, r"[Ss]chedul"),
    (LAYOUT, r"[Ll]ayout[-_ ]?([Aa]ssign|[Nn]ormal)"),
    (FUSION, r"[Ff]usion"),
    (PASSES, r"[Pp]ipeline|Phase\d|[Rr]emat|Alias|[Cc]opy.?[Ii]nsert|HloModule|^dce$|Verif"),
)

_WRAPPERS = (
    (
        CONVERSION,
        r"^(PjRt\w*::(Compile|Load)\b.*|\w*PjRtClient::(Compile|Load)\b.*|"
        r"CompileCpuExecutable)$",
    ),
    # Outside of the events in it LLVM is set up, and what was generated is freed: samples show it.
    (GENERATION, r"^CpuCompiler::CompileCpuExecutable$"),
    (
        REST,
        r"^(backend_compile_and_load|CompileAheadOfTime|CompileToBackendResult|"
        r"(Cpu|Gpu|NVPTX|AMDGPU|Tpu)Compiler::(Compile|Run)\w*)$",
    ),
)
"""Events around the whole of a compile, and the group of what they do by themselves."""

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
    tops = {
        name: [node for node in nodes if node is root or _holder([root], node.event)]
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
    deepest = node = _holder(tops, event)
    while node is not None:
        deepest = node
        node = _holder([one for one in node.children if one.event.thread == thread], event)
    assert deepest is not None
    return deepest


def _share(root: EventNode, hosts: dict[str, str]) -> None:
    """Give each moment of the compile to the events that work in it."""
    edges: list[tuple[int, int, int, EventNode]] = []
    for node in root.all():
        begin, end = node.event.begin_ns, node.event.end_ns
        edges += [(begin, 1, -end, node), (end, 0, -begin, node)]
    # Of one moment, what ends goes before what begins, inner before outer, outer before inner.
    edges.sort(key=lambda edge: edge[:3])
    stacks: dict[str, list[EventNode]] = defaultdict(list)
    working: list[EventNode] = []
    before = root.event.begin_ns
    for moment, begins, _, node in edges:
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
        outer = (REST, "") if _wrapper(node.event.name) else (node.group, node.part)
        todo += [(child, outer) for child in node.children]
    if any(child.group == CONVERSION for child in root.children):  # a plugin may have no events
        root.group = CONVERSION


def _wrapper(name: str) -> str:
    return next((group for group, pattern in _WRAPPERS if re.search(pattern, name)), "")


def group_of(name: str, parent: tuple[str, str], is_pipeline: bool) -> tuple[str, str]:
    """Return the group of an event, and the part of it, "" where it has none.

    Args:
        name: of the event.
        parent: group and part of the event that it is inside of.
        is_pipeline: XLA says that it is a pipeline of passes.
    """
    if wrapper := _wrapper(name):
        return wrapper, ""
    for part, pattern in _GENERATION:
        if re.search(pattern, name):
            return GENERATION, part
    if parent[0] == GENERATION:
        return parent
    for group, pattern in _OTHERS:
        if re.search(pattern, name):
            return group, ""
    if is_pipeline:
        return PASSES, ""
    return parent
