"""In which order origins stand in a history, and which environments continue each other.

Both are decided by what was chosen or committed, and by the clock only where nothing else tells:
a clock that was moved back must not shuffle commits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from harness.frame.frame import NO_MOMENT


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return what to sort names by: numbers in them as numbers, so that n9 stands before n10."""
    parts = re.findall(r"\d+|\D+", text)
    return tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts)


def in_order(
    nights: Sequence[str], commit_dates: Sequence[int], started: Sequence[int]
) -> list[int]:
    """Return the positions of origins from the oldest to the newest.

    1. Origins with a night stand in the order of the nights' names (:func:`natural`), within a
       night by the commit's date.
    2. Origins without one stand in the order of their commits' dates.
    3. The second are put among the first by the commit's date: before the first night that had
       a newer commit, or the same.
    4. Where all of this is equal, and for the date of what has no commit, the clock at which the
       origin began decides.

    Dates and moments are milliseconds since 1970, or :data:`harness.frame.frame.NO_MOMENT`.
    """
    dates = [
        clock if date == NO_MOMENT else date
        for date, clock in zip(commit_dates, started, strict=True)
    ]
    numbers = range(len(nights))
    named = sorted(
        (n for n in numbers if nights[n]), key=lambda n: (natural(nights[n]), dates[n], started[n])
    )
    others = sorted((n for n in numbers if not nights[n]), key=lambda n: (dates[n], started[n]))
    latest = NO_MOMENT
    keys: dict[int, tuple[int, bool, int]] = {}
    for place, n in enumerate(named):
        latest = max(latest, dates[n])  # a night that went back to an old commit stays in its place
        keys[n] = (latest, True, place)
    for place, n in enumerate(others):
        keys[n] = (dates[n], False, place)
    return sorted(numbers, key=keys.__getitem__)


def lanes(measured: Iterable[Sequence[str]], versions: Mapping[str, str]) -> dict[str, int]:
    """Return the lane of each environment: those of one lane continue each other in one series.

    An environment that is newly made for a newer JAX takes over from the one before it. Those that
    were ever measured side by side, in one night or at one commit, such as the newest release and
    the nightly, never share a lane; of several new ones the older JAX takes the earlier lane.

    `measured` are the environments of each night or commit, in order of time; `versions` those of
    their JAX.
    """
    together: dict[str, set[str]] = {}
    rounds = [list(dict.fromkeys(envs)) for envs in measured]
    for envs in rounds:
        for env in envs:
            together.setdefault(env, set()).update(other for other in envs if other != env)
    members: list[list[str]] = []
    lane: dict[str, int] = {}
    for envs in rounds:
        new = [env for env in envs if env not in lane]
        for env in sorted(new, key=lambda env: (natural(versions.get(env, "")), env)):
            free = (
                number for number, found in enumerate(members) if together[env].isdisjoint(found)
            )
            number = next(free, len(members))
            if number == len(members):
                members.append([])
            members[number].append(env)
            lane[env] = number
    return lane
