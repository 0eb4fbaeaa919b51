"""What is said of a budget that was exceeded: function, call site, cause, remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.profiles.budgets.use import CauseOf, Use, compile_s
from harness.profiles.causes.cause import Cause
from harness.profiles.causes.words import said
from harness.profiles.functions import Counted
from harness.profiles.model import Built
from harness.profiles.names import place_of
from harness.records.units import counted, often_text, seconds_text

MOST_FUNCTIONS = 5
MOST_CAUSES = 4
"""More is counted, and left to `harness profile`."""

NOUNS = {
    "max_compiles": ("compile", "was compiled"),
    "max_traces": ("trace", "was traced"),
    "max_lowers": ("lowering", "was lowered"),
    "max_builds": ("build", "was built"),
    "max_eager": ("one-operation program", "was compiled"),
    "max_unexplained": ("unexplained build", "was built unexplained"),
}

EAGER = (
    "JAX compiles every operation outside jax.jit once for each shape and type. Put the operations "
    "into a jitted function, or make arrays with numpy."
)


def _amount(name: str, value: float) -> str:
    """Return `3 compiles`, `1.5 s of compiling`."""
    if name == "max_compile_seconds":
        return f"{seconds_text(value)} of compiling"
    return counted(round(value), NOUNS[name][0])


def number(value: float) -> str:
    """Return a limit as it was written."""
    return f"{value:g}" if value != int(value) else str(int(value))


def each(over: Sequence[Use], cause_of: CauseOf, before: bool = True) -> list[str]:
    """Return what is said of each limit that was exceeded; a build is explained once.

    Args:
        over: what was used of each.
        cause_of: gives the cause of a build.
        before: whether it was recorded what was built earlier; without it, what looks like the
            first build of a function need not be.
    """
    texts = []
    explained: set[int] = set()
    for use in over:
        builds = {id(b) for c in use.functions for b in c.builds if use.counts(b, cause_of)}
        text = _exceeded(use, cause_of, before)
        texts.append(text.split("\n")[0] if builds and builds <= explained else text)
        explained |= builds
    return texts


def _exceeded(use: Use, cause_of: CauseOf, before: bool) -> str:
    subject = f" of {use.functions[0].shown}" if use.one and use.functions else ""
    lines = [
        f"{_amount(use.name, use.used)}{subject}, and {use.where} allows "
        f"{number(use.allowed)} ({use.name} = {number(use.allowed)})."
    ]
    users = sorted(
        ((one, _those(use, one, cause_of)) for one in use.functions),
        key=lambda pair: -len(pair[1]),
    )
    users = [(one, builds) for one, builds in users if builds or _inside(use, one)]
    for one, builds in users[:MOST_FUNCTIONS]:
        lines.extend(_function(use, one, builds, cause_of, before))
    if len(users) > MOST_FUNCTIONS:
        lines.append(f"  … and {len(users) - MOST_FUNCTIONS} more functions.")
    if use.name == "max_eager":
        lines.append(f"  {EAGER}")
    if use.name == "max_compile_seconds":
        lines.append("  Seconds depend on the machine; max_compiles is the same on all.")
    return "\n".join(lines)


def _those(use: Use, one: Counted, cause_of: CauseOf) -> list[Built]:
    return [built for built in one.builds if use.counts(built, cause_of)]


def _inside(use: Use, one: Counted) -> int:
    return one.inner_traces if use.name == "max_traces" else 0


def _function(
    use: Use, one: Counted, builds: list[Built], cause_of: CauseOf, before: bool
) -> Iterable[str]:
    if use.name == "max_compile_seconds":
        seconds = sum(map(compile_s, builds))
        yield f"  {one.shown}: {seconds_text(seconds)}, {counted(len(builds), 'build')}"
    else:
        count = sum(built.times("compile") for built in builds)
        if use.name not in ("max_compiles", "max_eager"):
            count = len(builds) + _inside(use, one)
        loads = sum(built.hits for built in builds)
        loaded = (
            f" ({loads} of them loaded from the persistent cache)"
            if loads and "compile" in NOUNS[use.name][1]
            else ""
        )
        yield f"  {one.shown} {NOUNS[use.name][1]} {often_text(count)}{loaded}"
    if inside := _inside(use, one):
        yield f"    {often_text(inside)} as a part of another function"
    if use.name == "max_eager":
        yield from _sites(builds)
        return
    shown = _grouped(builds, cause_of)
    # The first build is seldom what went wrong.
    shown.sort(key=lambda group: group[0].kind == "first")
    for cause, group in shown[:MOST_CAUSES]:
        many = f"{len(group)} × " if len(group) > 1 else ""
        yield f"    {many}called {_site(group[0])}: {said(cause, before or use.allowed > 0)}"
        if cause.remedy:
            yield f"      {cause.remedy}"
    if len(shown) > MOST_CAUSES:
        yield f"    … and {len(shown) - MOST_CAUSES} more causes"


def _sites(builds: list[Built]) -> Iterable[str]:
    by_site: dict[str, int] = {}
    for built in builds:
        by_site[_site(built)] = by_site.get(_site(built), 0) + 1
    for where, count in sorted(by_site.items(), key=lambda pair: -pair[1])[:2]:
        yield f"    {often_text(count)} {where}"


def _grouped(builds: list[Built], cause_of: CauseOf) -> list[tuple[Cause, list[Built]]]:
    """Return builds by cause and call site, the most frequent first; the first cause of each."""
    groups: dict[tuple[str, str, str], list[Built]] = {}
    causes: dict[tuple[str, str, str], Cause] = {}
    for built in builds:
        cause = cause_of(built)
        key = (_site(built), cause.kind, cause.argument)
        groups.setdefault(key, []).append(built)
        causes.setdefault(key, cause)
    return [(causes[key], group) for key, group in sorted(groups.items(), key=lambda g: -len(g[1]))]


def _site(built: Built) -> str:
    """Return `at train.py:88 in main`."""
    frame = built.call_site
    if not frame.file:
        return "from an unknown place"
    started = built.process.started
    place = place_of(frame.file, started.cwd, started.argv)
    inside = "" if frame.function == "<module>" else f" in {frame.function}"
    return f"at {place}:{frame.line}{inside}"
