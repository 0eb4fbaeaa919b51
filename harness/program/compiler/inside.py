"""The inside of one compile: its groups, its tree, and its kernels with their lines."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from harness.program.compiler import tree
from harness.program.compiler.places import is_users
from harness.program.compiler.tree import GROUPS, REST, CompileEvent, EventNode

_KERNEL = re.compile(r"^(?:XLA::TPU emitting for |Compiling IR:)(?P<name>\S+)$")
_CPU_KERNEL = re.compile(r"^(?:__compute_module_(?P<old>.+)|(?P<name>.+)_kernel_module)$")
_UNNAMED = re.compile(r"LLVMDialectModule")
"""What MLIR calls a module that XLA:GPU gave no name (jax 0.10 to 0.12)."""

_OF_MODULE = re.compile(r"( \([^()]*\)|(?<!:):(?!:)\S+| for \S+|\([^()]*\))$")


class PassGroup(msgspec.Struct):
    """What a group of events took."""

    name: str
    part: str
    """Of the group; "" for what is of no part."""
    wall_s: float
    """Of the compile's wall time: a moment in which several threads work is shared among them."""
    threads_s: float
    """Seconds of all threads, what they waited for each other left out."""


class PassBranch(msgspec.Struct):
    """Events of one name in one place of the tree."""

    name: str
    group: str
    count: int
    wall_s: float
    """With what is inside of it."""
    own_wall_s: float
    threads_s: float
    """With what is inside of it."""
    inside: list[PassBranch] = []


class Kernel(msgspec.Struct):
    """A kernel whose code was generated."""

    name: str
    """Of its instruction in the optimised HLO; "" where XLA does not name it."""
    wall_s: float
    threads_s: float
    operations: int = 0
    """That it consists of, where XLA says so; else 0."""
    op_name: str = ""
    """JAX's name of the operation, such as `jit(f)/jvp()/tanh`."""
    function: str = ""
    file: str = ""
    line: int = 0


class Inside(msgspec.Struct):
    """The inside of one compile."""

    wall_s: float
    """Of the traced compile."""
    threads_s: float
    covered: float
    """The share of the wall time that events of a known group were at work in."""
    groups: list[PassGroup]
    tree: PassBranch
    kernels: list[Kernel]
    unknown: dict[str, float]
    """Seconds by name, of events in no known group."""


def inside(events: Sequence[CompileEvent], hlo: str) -> Inside | None:
    """Return what XLA's events say of a compile; None where they are of none.

    Args:
        events: as :func:`harness.program.compiler.tree.recorded` returns them.
        hlo: the text of what was compiled, with its metadata.
    """
    root = tree.build(events)
    if root is None:
        return None
    wall_ns = root.event.end_ns - root.event.begin_ns
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    unknown: dict[str, float] = defaultdict(float)
    threads_ns = 0.0
    for node in root.all():
        one = sums[node.group, node.part]
        one[0] += node.wall_ns
        one[1] += node.busy_ns
        threads_ns += node.busy_ns
        if node.group == REST and node is not root:
            unknown[name_of(node)] += node.wall_ns / 1e9
    ordered = sorted(sums, key=lambda key: (GROUPS.index(key[0]), -sums[key][0]))
    groups = [PassGroup(*key, *(ns / 1e9 for ns in sums[key])) for key in ordered]
    rest = sum(one.wall_s for one in groups if one.name == REST)
    return Inside(
        wall_s=wall_ns / 1e9,
        threads_s=threads_ns / 1e9,
        covered=1 - rest / (wall_ns / 1e9),
        groups=groups,
        tree=_branch([root]),
        kernels=kernels(root, hlo),
        unknown=dict(sorted(unknown.items(), key=lambda item: -item[1])),
    )


def name_of(node: EventNode) -> str:
    """Return an event's name without that of its module, so that equal passes are equal."""
    return _OF_MODULE.sub("", node.event.name)


def kernel_of(event: CompileEvent) -> str | None:
    """Return the instruction whose kernel an event generates; None for another event."""
    match = _KERNEL.match(event.name)
    if match:
        return "" if _UNNAMED.match(match["name"]) else match["name"]
    match = _CPU_KERNEL.match(event.module)
    return (match["name"] or match["old"]) if match and "Compile" in event.name else None


def kernels(root: EventNode, hlo: str) -> list[Kernel]:
    """Return the kernels of a compile, the slowest first."""
    places = source_lines(hlo)
    named = []
    for node, name in _outermost_kernels(root):
        place = places.get(name) or places.get(name.rpartition(".")[0]) or SourceLine()
        inside = list(node.all())
        wall_s = sum(one.wall_ns for one in inside) / 1e9
        threads_s = sum(one.busy_ns for one in inside) / 1e9
        named.append(Kernel(name, wall_s, threads_s, node.event.operations, *place))
    return sorted(named, key=lambda kernel: -kernel.wall_s)


def _outermost_kernels(root: EventNode) -> Iterable[tuple[EventNode, str]]:
    """Yield what generates a kernel: on a GPU with the translation that follows it."""
    stack = [root]
    while stack:
        node = stack.pop()
        name = kernel_of(node.event)
        if node.event.name == "CompileSingleModule":
            named = [kernel_of(child.event) for child in node.children]
            name = next((one for one in named if one is not None), None)
        if name is None:
            stack += node.children
        else:
            yield node, name


def _branch(nodes: Sequence[EventNode]) -> PassBranch:
    """Return events of one name and place as one, with what is inside of them by name."""
    children: dict[str, list[EventNode]] = defaultdict(list)
    for node in nodes:
        for child in node.children:
            children[name_of(child)].append(child)
    own = sum(node.wall_ns for node in nodes) / 1e9
    threads = sum(node.busy_ns for node in nodes) / 1e9
    if len(children) == 1 and name_of(nodes[0]) in children:  # a pass and its own pipeline
        [same] = children.values()
        merged = _branch(same)
        merged.wall_s += own
        merged.own_wall_s += own
        merged.threads_s += threads
        merged.count = len(nodes)
        return merged
    inside = sorted(map(_branch, children.values()), key=lambda one: -one.wall_s)
    whole = own + sum(one.wall_s for one in inside)
    threads += sum(one.threads_s for one in inside)
    about = (name_of(nodes[0]), nodes[0].group, len(nodes))
    return PassBranch(*about, whole, own, threads, inside)


# Which of the user's lines an instruction of optimised HLO comes from, as its metadata says

_TABLE = re.compile(
    r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n((?:\d+ .*\n)*)", re.MULTILINE
)
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([^\s=]+) = .*?metadata=\{(.*)\}", re.MULTILINE)
_COMPUTATION = re.compile(r"^%?([^\s(]+) \(.*\{\n((?: .*\n)*)\}", re.MULTILINE)
_NAME = re.compile(r"^\s+(?:ROOT )?%?([^\s=]+) = ", re.MULTILINE)
_CALLS = re.compile(r"^\s+(?:ROOT )?%?([^\s=]+) = .*?\bcalls=%?([^\s,]+)", re.MULTILINE)
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_OLD_PLACE = re.compile(r'source_file="((?:[^"\\]|\\.)*)".*?source_line=(\d+)')
_FIELD = re.compile(r"(\w+)=(\d+)")


class SourceLine(NamedTuple):
    """Where an instruction comes from; "" and 0 where its metadata does not say.

    A fusion without metadata comes from where most of what is fused in it does.
    """

    op_name: str = ""
    function: str = ""
    file: str = ""
    line: int = 0


def source_lines(hlo: str) -> dict[str, SourceLine]:
    """Return the places of a program's instructions, by their names in the optimised HLO.

    `hlo` is the text of its module, with its metadata and its tables of stack frames.
    """
    tables = {
        name: [line.split(" ", 1) for line in body.splitlines()]
        for name, body in _TABLE.findall(hlo)
    }
    files, functions = (
        {int(number): text.strip('"') for number, text in tables.get(name, ())}
        for name in ("FileNames", "FunctionNames")
    )
    locations, frames = (
        {
            int(number): {key: int(value) for key, value in _FIELD.findall(text)}
            for number, text in tables.get(name, ())
        }
        for name in ("FileLocations", "StackFrames")
    )

    def place(metadata: str) -> SourceLine:
        named = _OP_NAME.search(metadata)
        op_name = named[1] if named else ""
        old = _OLD_PLACE.search(metadata)
        if old:
            return SourceLine(op_name, "", old[1], int(old[2]))
        frame = _FRAME.search(metadata)
        stack: list[SourceLine] = []
        number = int(frame[1]) if frame else 0
        while number in frames and len(stack) < len(frames):
            at = locations.get(frames[number].get("file_location_id", 0), {})
            function = functions.get(at.get("function_name_id", 0), "")
            file = files.get(at.get("file_name_id", 0), "")
            stack.append(SourceLine(op_name, function, file, at.get("line", 0)))
            # XLA counts parents from one behind: 0 and itself are no parent.
            parent = frames[number].get("parent_frame_id", 0) - 1
            if parent == number:
                break
            number = parent
        users = [one for one in stack if one.file and is_users(one.file)]
        return (users or stack or [SourceLine(op_name)])[0]

    of = {name: place(metadata) for name, metadata in _INSTRUCTION.findall(hlo)}
    within: dict[str, Counter[SourceLine]] = {}
    for computation, body in _COMPUTATION.findall(hlo):
        names = _NAME.findall(body)
        within[computation] = Counter(of[name] for name in names if name in of)
    for name, computation in _CALLS.findall(hlo):
        if name not in of and within.get(computation):
            of[name] = within[computation].most_common(1)[0][0]
    return of
