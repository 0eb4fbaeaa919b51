"""What differs between the facts of two rows of the frame, in a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.program import difference
from harness.program.facts import TOTALS, Facts


def facts_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the facts that differ, such as `+1 fusion, +4.1 kB temporary`.

    Args:
        before: facts by name (:data:`harness.program.facts.TOTALS`), of which other keys are left
            alone: a row of the frame will do. A fact that is absent, None or NaN is not known.
        after: the same of what is compared with it.

    Returns:
        "" where none differs; a fact that only one side knows is no difference.
    """
    known = [name for name in TOTALS if _is_known(before.get(name)) and _is_known(after.get(name))]
    old, new = (
        msgspec.convert({name: float(facts[name]) for name in known}, Facts, strict=False)
        for facts in (before, after)
    )
    return difference.summary(difference.facts_difference(old, new))


def _is_known(value: Any) -> bool:
    return value is not None and value == value
