"""An array is committed to a device, and was not; or the reverse."""

from __future__ import annotations

from collections.abc import Iterator

from harness.profiles.causes.cause import Change, ChangeKind, Pair
from harness.profiles.causes.words import committed, committed_text
from harness.profiles.model import Built
from harness.watch.events import Leaf


def _placement(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    old, new = leaves
    if committed(old) != committed(new):
        yield Change(new.path, committed_text(old), committed_text(new))


def _sentence(built: Built, what: Change) -> str:
    name = f"`{what.argument}`"
    if what.before == "not committed":
        return f"{name} is now committed ({what.after}); before it was not, and JAX could move it."
    return f"{name} is no longer committed; before it was ({what.before})."


CAUSE = ChangeKind(
    name="committed",
    looks={"placement": _placement},
    sentence=_sentence,
    remedy="Put `{argument}` where it shall be before the first call (jax.device_put with a device "
    "or sharding commits it), or never.",
    placed=True,
)
