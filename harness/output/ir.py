"""Programs and how they grow, in words. Nothing prints."""

from __future__ import annotations

from harness.ir.comparison import ProgramComparison, ProgramSide
from harness.ir.growth import Growth

CERTAIN = 1.0
"""An interval that is wider says nothing of how something grows."""

NEAR = 0.05
"""So near to a whole power it is that one, however sure it is that it is not quite."""

_POWERS = {
    0: "does not grow with",
    1: "grows in proportion to",
    2: "grows with the square of",
    3: "grows with the cube of",
}


def verdict_text(compared: ProgramComparison, a: ProgramSide, b: ProgramSide, stage: str) -> str:
    """Return how two programs compare, by the texts of a stage."""
    arrow = f"{a.fingerprint} → {b.fingerprint}"
    if compared.same:
        same = f"the same program ({a.fingerprint})"
        if compared.constants:
            return f"{same} but for the values of its constants"
        return f"{same}, from another {stage}" if compared.text else same
    if not compared.stored:
        return (
            f"another program: {arrow}. Its text was not kept at both commits; `harness run "
            "--fresh --keep-programs` keeps it."
        )
    if not compared.differ:
        return f"the same {stage} but for the names in it: {arrow}"
    constants = " but for its constants" * compared.constants
    return f"another program: {arrow}" + (
        "" if compared.text else f", of the same {stage}{constants}"
    )


def growth_text(growth: Growth, axis: str) -> str:
    """Return how something grows with an axis."""
    name, exponent, low, high = growth.name, growth.exponent, growth.low, growth.high
    if exponent is None or low is None or high is None:
        return f"how {name} grows with {axis} is not known: too few values have it"
    if high - low > CERTAIN:
        between = f"{low:.1f} and {high:.1f}"
        return f"how {name} grows with {axis} is not known: to a power between {between}"
    held = [power for power in _POWERS if low <= power <= high]
    if not held and abs(exponent - round(exponent)) < NEAR:
        held = [power for power in _POWERS if power == round(exponent)]
    text = f"{name} grows with {axis} to the power {exponent:.1f} ({low:.1f} to {high:.1f})"
    if len(held) == 1:
        text = f"{name} {_POWERS[held[0]]} {axis}"
    return text if growth.is_power else f"{text}, roughly: it is no power of it"
