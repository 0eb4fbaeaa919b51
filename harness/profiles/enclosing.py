"""Which functions of the program small programs are in, and where it calls a library's."""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from harness.jaxhooks.events import Frame
from harness.profiles.causes.cause import ToJit
from harness.profiles.model import Built
from harness.profiles.names import line_text, package_of

_MAP = re.compile(r"\btree(\.|_util\.tree_|_)map(_with_path)?\(")

_PASSING = ("numpy",)
"""Libraries that hand on what somebody asked them for: `np.sum(x)` of an array of JAX's."""

_Key = tuple[str, str]

_OWN_SHARE = 0.25
"""Share of a function's programs that its own lines build, from which it is what computes.

One that mostly calls others that do (a loop over epochs) is not what to jit.
"""

_SHARE = 0.15
"""Share of small programs' seconds from which a function is named for them."""

_MOST_NAMES = 3

_VALUES = re.compile(
    r"print|float|(np|numpy|onp)\.(asarray|array|allclose|isnan|save\w*)"
    r"|.*\.(item|tolist|block_until_ready|savefig|assert_\w+)",
    re.DOTALL,
)
"""Calls that fail on what is being traced, or would be done once."""


def caller_of(built: Built) -> str:
    """Return the library that called JAX; empty for the program itself."""
    for frame in reversed(built.frames):
        if frame.origin == "program":
            return ""
        name = package_of(frame.file)
        if name and name not in _PASSING:
            return name
    return ""


def library_line(built: Built, library: str) -> str:
    """Return the library's own line that called JAX."""
    frames = (frame for frame in reversed(built.frames) if package_of(frame.file) == library)
    frame = next(frames, None)
    return line_text(frame.file, frame.line) if frame else ""


def imports_jax(built: Built) -> bool:
    """Return whether a file of the library that called JAX imports it, or is not there to be read.

    Matplotlib and the like do not: arrays of JAX's were handed to them.
    """
    caller = caller_of(built)
    return any(_imports_jax(f.file) for f in built.frames if package_of(f.file) == caller)


def is_import(built: Built) -> bool:
    """Return whether a library is being imported, which the program or another one asked for."""
    for frame in reversed(built.frames[1:]):  # the first may be of `python -m pytest`
        if frame.origin == "program" or frame.function == "<module>":
            return frame.origin == "library"
    return False


@functools.lru_cache(maxsize=256)
def _imports_jax(file: str) -> bool:
    lines = linecache.getlines(file)
    return not lines or any(re.match(r"\s*(from|import)\b.*\bjax\b", line) for line in lines)


class Enclosing:
    """Finds the outermost function to jit.

    Nothing is jitted below it so far, and programs outside jit are built by its own lines, or by
    what they call of a library.
    """

    def __init__(self, builds: Sequence[Built]) -> None:
        calling = {caller_of(built) for built in builds if built.eager}
        jitted = {package_of(built.function.file) for built in builds}
        self._libraries = (calling | jitted) - {"", "jax"}
        """Those that use JAX. Others stand around the program: pytest, absl's `app.run(main)`."""
        self._names = {built.function.name for built in builds if not built.eager}
        self._jits: set[_Key] = set()
        """Functions that something jitted was called from."""
        within: Counter[_Key] = Counter()
        own: Counter[_Key] = Counter()
        for built in builds:
            keys = list(dict.fromkeys(map(_key, self._own(built))))
            if not built.eager:
                self._jits.update(keys)
            elif keys:
                within.update(keys)
                own.update([keys[-1]])
        self._compute = {key for key in within if own[key] >= _OWN_SHARE * within[key]}

    def _own(self, built: Built) -> list[Frame]:
        """Return the program's frames up to its first call of a library that calls JAX."""
        frames = []
        for frame in built.frames:
            if frame.origin == "program":
                frames.append(frame)
            elif package_of(frame.file) in self._libraries:
                break
        return frames

    def to_jit(self, built: Built) -> ToJit | None:
        """Return the function to jit; None where there is none."""
        frames = self._own(built)
        makers = {frame.function + ".<locals>" for frame in frames}
        for frame in frames:
            key, (around, _, name) = _key(frame), frame.function.rpartition(".")
            if key in self._compute and key not in self._jits and _may_be_jitted(frame):
                file = PurePath(frame.file).name if name in self._names else ""
                return ToJit(name, file, nested=around in makers)
        return None

    def mapped(self, builds: Sequence[Built]) -> ToJit | None:
        """Return the function that `jax.tree.map` calls on each array, if it builds most of these.

        Jitted by itself it is built for each shape; the whole map is one program.
        """
        took: Counter[ToJit] = Counter()
        for built in builds:
            frames = [frame for frame in built.frames if frame.origin == "program"]
            for inner, outer in itertools.pairwise(reversed(frames)):
                if _MAP.search(linecache.getline(outer.file, outer.line)):
                    took[ToJit(inner.function.rpartition(".")[2])] += built.build_ns
                    break
        most = max(took, key=took.__getitem__, default=None)
        half = sum(built.build_ns for built in builds) / 2
        return most if most and took[most] > half else None

    def of_most(self, builds: Iterable[Built]) -> tuple[int, tuple[ToJit, ...]]:
        """Return the few functions that take most of these builds' time, the slowest first.

        Before them, how many are in them; none are named that only one is in.
        """
        counts: Counter[ToJit | None] = Counter()
        seconds: Counter[ToJit | None] = Counter()
        for built in builds:
            function = self.to_jit(built)
            seconds[function] += built.build_ns
            counts[function] += built.times("compile")
        least = _SHARE * seconds.total()
        most = [one for one, ns in seconds.most_common() if one is not None and ns >= least]
        most = [one for one in most if counts[one] > 1][:_MOST_NAMES]
        return sum(counts[one] for one in most), tuple(most)

    def site_of(self, built: Built) -> str:
        """Return the program's own line that called the library, `train.py:88`."""
        own = self._own(built)
        if not own:
            return built.site
        return line_text(own[-1].file, own[-1].line, built.process.started.cwd)


def _key(frame: Frame) -> _Key:
    return frame.file, frame.function


def _may_be_jitted(frame: Frame) -> bool:
    """Return whether it is a function: no program or test as a whole, method or generator.

    A method reads of `self` what jit would keep as it was.
    """
    around, _, name = frame.function.rpartition(".")
    if name.startswith(("<", "__", "test")) or name == "main":
        return False
    is_method = around and not around.endswith("<locals>")
    return not is_method and name not in _without_jit(frame.file)


@functools.lru_cache(maxsize=256)
def _without_jit(file: str) -> frozenset[str]:
    """Return the functions of a file that yield, print or ask for values, if it is there."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return frozenset()
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return frozenset(one.name for one in functions if any(map(_needs_values, ast.walk(one))))


def _needs_values(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return _VALUES.fullmatch(ast.unparse(node.func)) is not None
    return isinstance(node, ast.Yield | ast.YieldFrom)
