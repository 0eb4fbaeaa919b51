"""Where an array lies: its devices, how it is divided among them, its order in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.profiles.causes.cause import Change, ChangeKind, Look, Pair
from harness.profiles.causes.words import array_type, committed, of_operations
from harness.profiles.model import Built
from harness.watch.events import Leaf

_SHARDING = re.compile(
    r"(?P<how>\w+\(.*\))(?: on (?P<devices>\S+))?(?: in (?P<memory>\S+))?", re.DOTALL
)


def _where(leaf: Leaf) -> str:
    """Return a device's name where there is one, and else the whole sharding."""
    match = _SHARDING.fullmatch(leaf.sharding)
    if match and match["devices"] and match["how"] == "SingleDeviceSharding()":
        return match["devices"] + (f" in {match['memory']}" if match["memory"] else "")
    return leaf.sharding


def _committed_text(leaf: Leaf) -> str:
    return _where(leaf) if committed(leaf) else "not committed"


def _types(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    """A mesh and the space in memory are part of an array's type."""
    old, new = leaves
    one, other = array_type(old.aval), array_type(new.aval)
    if one is None or other is None or one.shape != other.shape:
        return
    if one.space != other.space or (old.aval != new.aval and one.dtype == other.dtype):
        before, after = _committed_text(old), _committed_text(new)
        if before == after:
            before, after = old.aval, new.aval
        yield Change(new.path, before, after)


def _moved(alike: bool) -> Look:
    """Return what sees an array lie on other devices, in the same manner or not."""

    def look(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
        old, new = leaves
        if not committed(old) or not committed(new) or old.sharding == new.sharding:
            return
        one, other = (_SHARDING.fullmatch(leaf.sharding) for leaf in leaves)
        same = one and other and one.group("how", "memory") == other.group("how", "memory")
        if bool(same) == alike:
            yield Change(new.path, _where(old), _where(new))

    return look


def _commitment(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    old, new = leaves
    if committed(old) != committed(new):
        yield Change(new.path, _committed_text(old), _committed_text(new))


def _layout(pair: Pair, leaves: tuple[Leaf, Leaf]) -> Iterator[Change]:
    old, new = leaves
    if old.layout != new.layout:
        before, after = (leaf.layout or "the usual order" for leaf in leaves)
        yield Change(new.path, before, after)


def _sentence(built: Built, what: Change) -> str:
    name = f"`{what.argument}`"
    if what.before == "not committed":
        return f"{name} is now committed ({what.after}); before it was not, and JAX could move it."
    return f"{name} is no longer committed; before it was ({what.before})."


SHARDING = ChangeKind(
    name="sharding",
    looks={
        "types": _types,
        "statics": of_operations("sharding", "out_sharding"),
        "placement": _moved(alike=False),
    },
    sentence="The sharding of `{argument}` was {before}, now {after}.",
    remedy="Give `{argument}` one sharding before the first call, e.g. by jax.device_put.",
    each=True,
    placed=True,
)
COMMITTED = ChangeKind(
    name="committed",
    looks={"placement": _commitment},
    sentence=_sentence,
    remedy="Put `{argument}` where it shall be before the first call (jax.device_put with a device "
    "or sharding commits it), or never.",
    placed=True,
)
DEVICE = ChangeKind(
    name="device",
    looks={"placement": _moved(alike=True)},
    sets_off="LC",
    sentence="`{argument}` is committed to {after}, before to {before}.",
    remedy="Keep `{argument}` on one device; a program is built for each device it runs on.",
    each=True,
)
LAYOUT = ChangeKind(
    name="layout",
    looks={"placement": _layout},
    sentence="The layout of `{argument}` was {before}, now {after}.",
    remedy="Give `{argument}` one layout; JAX builds a program for each.",
    each=True,
)
