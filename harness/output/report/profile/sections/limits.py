"""What the numbers do not say."""

from __future__ import annotations

from harness.output.profile import damage_text
from harness.output.report.content import Content, Section
from harness.output.report.profile.tables import Shown
from harness.profiles.figures import damage, unexplained
from harness.profiles.model import seconds_of
from harness.records.units import seconds_text, share_text

PRIVACY = (
    "This page contains paths, command lines, names and shapes of arguments, and values of static "
    "arguments. Look through it before you give it away."
)

METHOD = (
    "Seconds are wall time by the profile's own clock; where one stage runs inside another, the "
    "outer one counts.",
    "A stage is what JAX did before a program runs. A call returns before its computation has "
    "finished, so computing is part of the rest of the wall time.",
    "Threads that build at once share that moment in the parts of the wall time. Everywhere else "
    "each counts in full, so that sums over threads can be more than the wall time.",
    "Bytes are what XLA says of its executables; the persistent cache’s outcomes are what it did, "
    "not what it was asked to do.",
)

UNATTRIBUTED = 0.01
"""Share of the wall time from which it is said that nothing is known of it."""


def _content(shown: Shown) -> Content:
    return Content(intro=" ".join(_doubts(shown)), notes=(*METHOD, PRIVACY))


def _doubts(shown: Shown) -> list[str]:
    """Return, in a sentence each, what a reader should know before they trust the numbers."""
    profile, time = shown.profile, shown.frame("time")
    lines = list(map(damage_text, damage(profile)))
    if profile.unfinished:
        lines.append(
            f"Builds that were still going on when their log ended: {len(profile.unfinished)}."
        )
    unknown = unexplained(profile)
    if unknown:
        seconds = seconds_text(seconds_of(unknown))
        lines.append(f"Unexplained builds: {len(unknown)}, {seconds}.")
    rest = time[(time["part"] == "unattributed") & (time["scope"] == "run")]["seconds"].sum()
    whole = time[time["scope"] == "run"]["seconds"].sum()
    if rest > UNATTRIBUTED * whole:
        share = share_text(rest, whole)
        lines.append(f"Wall time that is not attributed: {seconds_text(rest)}, {share}.")
    return lines


def _known(shown: Shown) -> tuple[str, ...]:
    return (*_doubts(shown), PRIVACY)


SECTION = Section(
    name="limits",
    title="Limits of the numbers",
    intro="Nothing stands out.",
    content=_content,
    answer=(3, "What to know about the numbers", _known),
)
