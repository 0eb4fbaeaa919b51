"""What makes a compile slow, and what helps. Wakes no JAX."""

import msgspec


class Remedy(msgspec.Struct):
    """What makes a compile slow, and what helps."""

    cause: str
    line: str
    """`function file:line`; "" where it is not known."""
    advice: str
    cost_s: float | None = None
    """Of the compile's wall time that is known to be its; so much a remedy can save."""
    saved_s: float | None = None
    """That the compile took less with the remedy, where it was tried."""

    def worth_s(self) -> float:
        """Return what it saves, as far as that is known."""
        return self.saved_s if self.saved_s is not None else self.cost_s or 0.0
