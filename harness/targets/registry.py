"""The targets there are: each an object, and a line here."""

from __future__ import annotations

from collections.abc import Iterable

from harness.errors import UsageError, find_name
from harness.targets import described_gpu, described_tpu, host
from harness.targets.target import Target

TARGETS = {
    target.name: target
    for target in (
        host.CPU,
        host.GPU,
        host.TPU,
        *described_gpu.KNOWN,
        *described_tpu.KNOWN,
    )
}
"""Every target that needs no file of the user's, by name."""


def find(name: str) -> Target:
    """Return the target called `name`; for `gpu:FILE.pbtxt` the one that the file describes.

    That is called `gpu:STEM`, because a name in a record holds no path.

    Raises:
        UsageError: there is no such target (the text says what there is), or its file is no good.
    """
    if described_gpu.is_file(name):
        return described_gpu.from_file(name, TARGETS)
    described_gpu.check_known(name)
    also = ", and gpu:FILE.pbtxt for a GPU that a file describes"
    return TARGETS[find_name(name, TARGETS, "target", also)]


def names(typed: Iterable[str]) -> tuple[str, ...]:
    """Return targets as their own names; a `gpu:FILE.pbtxt` stays, for whoever reads the file.

    Raises:
        UsageError: as :func:`find`.
    """
    pairs = [(name, find(name)) for name in typed]
    return tuple(name if target.file else target.name for name, target in pairs)


def find_all(names: Iterable[str]) -> list[Target]:
    """Return the targets called `names`, each once.

    Raises:
        UsageError: as :func:`find`, or two files would give two targets the same name.
    """
    chosen: dict[str, Target] = {}
    for target in map(find, names):
        earlier = chosen.setdefault(target.name, target)
        if earlier.digest != target.digest:
            raise UsageError(
                f"{earlier.file} and {target.file} would both be called {target.name}; rename one."
            )
    return list(chosen.values())
