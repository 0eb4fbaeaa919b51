"""Whether two arms really differ in what was asked for: what reached JAX is in their records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from harness.frame.choose import INSTRUMENTS
from harness.records.environment import is_flag
from harness.records.schema import Record
from harness.verdicts.live.arm import Arm


def difference_problems(arms: Sequence[Arm], records: Sequence[Sequence[Record]]) -> Iterator[str]:
    """Yield what is wrong with the difference between two arms, from the records of one round."""
    found = [[record for record in arm if record.status == "ok"] for arm in records]
    for letter, arm, of_arm in zip("AB", arms, found, strict=True):
        yield from _unreached(letter, arm, of_arm)
    first, second = map(_recorded, found)
    if first == second:
        yield (
            "both arms are identical: the same commit and working tree, and nothing that is "
            "recorded of their environments differs"
        )
    elif _without_flags(first) == _without_flags(second) and _programs(found[0]) == _programs(
        found[1]
    ):
        yield "the arms' flags differ, but XLA built the same program for every case"


def _unreached(letter: str, arm: Arm, records: Sequence[Record]) -> Iterator[str]:
    """Yield which of an arm's variables its processes did not see as they were set."""
    seen = [msgspec.json.decode(record.environment).get("flags", {}) for record in records]
    for name, value in arm.variables.items():
        if is_flag(name) and any(flags.get(name) != value for flags in seen):
            there = next(flags.get(name) for flags in seen if flags.get(name) != value)
            yield f"{name}={value} did not reach JAX in arm {letter}: it found {there!r}"


def _recorded(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return what tells apart where records were taken, each once."""
    found: list[dict[str, Any]] = []
    for record in records:
        place = {name: getattr(record, name) for name in ("commit", "dirty", "target", "scenario")}
        place["environment"] = msgspec.json.decode(record.environment)
        if record.workload not in INSTRUMENTS and place not in found:
            found.append(place)
    return sorted(found, key=repr)


def _without_flags(places: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**place, "environment": {**place["environment"], "flags": {}}} for place in places]


def _programs(records: Sequence[Record]) -> set[tuple[str, str]]:
    return {
        (repr((r.workload, r.axes, r.transform, r.precision)), r.fingerprint)
        for r in records
        if r.workload not in INSTRUMENTS
    }
