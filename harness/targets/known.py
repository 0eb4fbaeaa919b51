"""Find a target by what the user calls it."""

from __future__ import annotations

from collections.abc import Iterable

from harness.errors import UsageError
from harness.targets import compile_only
from harness.targets.real import REAL
from harness.targets.target import Target

TARGETS = {target.name: target for target in (*REAL, *compile_only.known())}
"""Every target that needs no file of the user's, by name."""

_TAKEN = frozenset(part for name in TARGETS for part in name.split(":"))


def find(name: str) -> Target:
    """Return the target called `name`; for `gpu:FILE.pbtxt` the one that the file describes.

    That is called `gpu:STEM`, because a name in a record holds no path.

    Raises:
        UsageError: there is no such target (the text says what there is), or its file is no good.
    """
    if name in TARGETS:
        return TARGETS[name]
    if compile_only.is_file(name):
        return compile_only.from_file(name, _TAKEN)
    raise UsageError(
        f"No target is called {name!r}; known are {', '.join(TARGETS)}, and gpu:FILE.pbtxt for a "
        "GPU that a file describes."
    )


def find_all(names: Iterable[str]) -> list[Target]:
    """Return the targets called `names`, each once.

    Raises:
        UsageError: as :func:`find`, or two files would give two targets the same name.
    """
    found: dict[str, Target] = {}
    for target in map(find, names):
        earlier = found.setdefault(target.name, target)
        if earlier.digest != target.digest:
            raise UsageError(
                f"{earlier.file} and {target.file} would both be called {target.name}; rename one."
            )
    return list(found.values())
