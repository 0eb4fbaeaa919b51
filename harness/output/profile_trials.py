"""What the remedies that `harness profile try` tries are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.profiles.names import Names

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded
    from harness.profiles.trials import AppliedRemedy, NotTried


class TrialNames:
    """What the remedies that are tried of a profile are called."""

    def __init__(self, profile: Recorded) -> None:
        self._names = Names(built.function for built in profile.builds)

    def of(self, remedy: AppliedRemedy) -> str:
        """Return `steps` of `relax` as a dynamic argument."""
        if remedy.function is None:
            return "the persistent cache, from the second run on"
        arguments = ", ".join(f"`{one}`" for one in remedy.arguments)
        how = {
            "dynamic": "as a dynamic argument",
            "strong": f"always {' or '.join(remedy.dtypes)}",
            "padded": "padded to powers of two",
        }
        return f"{arguments} of {self._names.of(remedy.function)} {how[remedy.how]}"

    def not_tried(self, one: NotTried) -> str:
        """Return shape of `x` of `loss`."""
        if one.function is None:
            return "the persistent cache, which the program has"
        argument = f"`{one.argument}` of " if one.argument else ""
        return f"{one.kind} of {argument}{self._names.of(one.function)}"
