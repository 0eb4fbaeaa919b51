"""What a function that is made anew computes is another thing as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.profiles.causes.cause import UNSURE, Cause, Kind, Pair

if TYPE_CHECKING:
    from harness.profiles.causes.cause import Difference

CAUSE = Kind(name="another program", several="each time another program, of another {what}")

_KINDS = ("new function object", "pytree")


def of(pair: Pair, found: list[Difference]) -> Cause | None:
    """Return the cause where a function that is made anew has a program like none before.

    To make it once, which is the remedy of the one, would not leave out the other.
    """
    old, new = pair
    made = [one for one in found if one.kind.name == _KINDS[0] or one.change.defined]
    if not made or any(one not in made and one.kind.name not in _KINDS for one in found):
        return None
    if new.eager or not old.work or new.process.works.get(new.work) != new.line.id:
        return None
    what = made[0].change
    sentence = f"It is another program than before, of another `{what.argument}`."
    remedy = UNSURE + "differ in it, define it once, and pass them as arguments."
    own = new.function.origin == "program" and made == found
    return Cause(CAUSE.name, *what[:3], sentence, remedy if own else "", old.line.id)
