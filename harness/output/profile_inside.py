"""What XLA did in the slowest compiles of a program, as `harness profile --inside` recorded it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.profiles.inside import recorded, slowest_compiles
from harness.program.compiler.inside import Inside, inside
from harness.program.compiler.recording import Untraceable, read
from harness.program.compiler.times import CompileTime, compile_times
from harness.program.compiler.tree import REST
from harness.records.units import seconds_text, share_text

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded

MOST_FUNCTIONS = 5
MOST_GROUPS = 4

_MARGIN = " " * 11


def inside_lines(profile: Recorded) -> Iterator[str]:
    """Yield what XLA did in each function's slowest compile, the slowest function first.

    Nothing where nothing of it was recorded. A line has about 100 characters.
    """
    files = list(recorded(profile))
    if not files:
        return
    cost_s = sum(one.cost_s for one in files)
    yield f"Inside of compiles, by XLA's events ({seconds_text(cost_s)} of compile are for them):"
    for one in slowest_compiles(files)[:MOST_FUNCTIONS]:
        try:
            compiles = inside(read(one.path), "")
        except Untraceable as error:
            yield f"{one.name}: {error}"
            continue
        if compiles is not None:
            yield f"{seconds_text(compiles.wall_s):>9}  {one.name}"
            yield from textwrap.wrap(
                _text(compiles), 100, initial_indent=_MARGIN, subsequent_indent=_MARGIN
            )


def _text(inside: Inside) -> str:
    """Return `55 % code generation: LLVM (TaskDispatcher::dispatch), 20 % fusion, ...`."""
    times = compile_times(inside)
    named = sorted((one for one in times.groups if one.group != REST), key=lambda one: -one.wall_s)
    texts = []
    for one in named[:MOST_GROUPS]:
        own = [each for each in times.passes if (each.group, each.part) == (one.group, one.part)]
        most = max(own, key=lambda each: each.wall_s, default=CompileTime(""))
        name = f": {one.part}" if one.part else ""
        name += f" ({most.name})" if most.wall_s > one.wall_s / 2 else ""
        texts.append(f"{share_text(one.wall_s, inside.wall_s)} {one.group}{name}")
    return ", ".join(texts)
