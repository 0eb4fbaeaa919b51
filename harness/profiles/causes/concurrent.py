"""Another thread did the same at the same time."""

from __future__ import annotations

from harness.profiles.causes.cause import Cause, LossKind, Lost


def _at_once(lost: Lost) -> Cause | None:
    new = lost.built.line
    lines = [built.line for built in lost.had]
    if any(old.thread == new.thread or old.end_ns <= new.begin_ns for old in lines):
        return None
    return Cause(
        "concurrent",
        sentence=f"Another thread was building `{lost.built.function.name}` for the same arguments "
        "when this one began.",
        remedy="Call it once before the threads start.",
        nearest=lines[-1].id,
    )


CAUSE = LossKind(name="concurrent", explains=_at_once)
