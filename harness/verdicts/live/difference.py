"""Whether the arms of a live comparison differ as they were meant to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from harness.frame.frame import INSTRUMENTS
from harness.records import environment
from harness.records.schema import Record
from harness.verdicts.live.arm import LiveArm


def difference_problems(
    arms: Sequence[LiveArm], records: Sequence[Sequence[Record]]
) -> Iterator[str]:
    """Yield what is wrong with the difference between two arms, from the records of one round.

    Arms may differ in nothing, or in what did not reach JAX, or changed no program.
    """
    measured = [[record for record in of_arm if record.status == "ok"] for of_arm in records]
    for letter, arm, of_arm in zip("AB", arms, measured, strict=True):
        yield from _unreached(letter, arm, of_arm)
    first, second = map(_recorded, measured)
    if first == second:
        yield (
            "both arms are identical: the same commit and working tree, and nothing that is "
            "recorded of their environments differs"
        )
    elif _without_flags(first) == _without_flags(second) and (
        _programs(measured[0]) == _programs(measured[1])
    ):
        yield "the arms' flags differ, but XLA built the same program for every case"


def _unreached(letter: str, arm: LiveArm, records: Sequence[Record]) -> Iterator[str]:
    """Yield which of an arm's variables its processes did not see as they were set."""
    seen = [msgspec.json.decode(record.environment).get("flags", {}) for record in records]
    for name, value in arm.variables.items():
        wrong = [flags.get(name) for flags in seen if flags.get(name) != value]
        if environment.is_flag(name) and wrong:
            yield f"{name}={value} did not reach JAX in arm {letter}: it found {wrong[0]!r}"


def _recorded(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return what tells apart where records were taken, each once."""
    places: list[dict[str, Any]] = []
    for record in records:
        place = {name: getattr(record, name) for name in ("commit", "dirty", "target", "scenario")}
        place["environment"] = msgspec.json.decode(record.environment)
        if record.workload not in INSTRUMENTS and place not in places:
            places.append(place)
    return sorted(places, key=repr)


def _without_flags(places: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**place, "environment": {**place["environment"], "flags": {}}} for place in places]


def _programs(records: Sequence[Record]) -> set[tuple[str, str]]:
    return {
        (repr((r.workload, r.axes, r.transform, r.precision)), r.fingerprint)
        for r in records
        if r.workload not in INSTRUMENTS
    }
