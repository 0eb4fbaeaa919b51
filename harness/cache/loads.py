"""Whether XLA loads the executables of a cache: tried in a process of its own, one by one.

What is proven is that an entry cannot be read. One that wants other devices than this process has,
or calls to libraries that its program registers, is not judged.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from harness.cache.directory import CACHE_SUFFIX
from harness.errors import HarnessError
from harness.jaxhooks.jax_names import module
from harness.measure import channel
from harness.measure.child import Child, ChildTimeout, of_module

PATIENCE_S = 60.0
"""No entry takes longer; the process is then stopped, and the entry is not judged."""

NO_SYMBOLS = "Symbols not found"
"""What XLA says where the code of a kernel is not there, or calls what only another jaxlib has."""

_PROVES = re.compile(f"pars|deserializ|decompress|magic|corrupt|{NO_SYMBOLS}", re.IGNORECASE)
"""In what XLA says of bytes that are no executable (jaxlib 0.10.2 to 0.12.0.1)."""


class Loads(msgspec.Struct, frozen=True):
    """What came of loading entries.

    Attributes:
        refused: Entries that it cannot read, and its error; or how the process died at them.
        unjudged: How many it did not load for want of something else.
    """

    loaded: int
    refused: Mapping[str, str]
    unjudged: int


def load(directory: Path, names: Sequence[str]) -> Loads:
    """Have the installed JAX load entries for CPUs, as a program that hits them would.

    `names` are those of entries, without `-cache`.
    """
    refusals: dict[str, str] = {}
    while left := [name for name in names if name not in refusals]:
        answers, died = _one_process(directory, left)
        refusals |= answers
        if died:
            refusals[left[len(answers)]] = died
    bad = {name: text for name, text in refusals.items() if text}
    refused = {n: text for n, text in bad.items() if _PROVES.search(text) or "killed" in text}
    return Loads(len(refusals) - len(bad), refused, len(bad) - len(refused))


def _one_process(directory: Path, names: Sequence[str]) -> tuple[dict[str, str], str]:
    """Return each entry's error, or none, and how the process died at the one after them."""
    lines: list[bytes] = []
    heard = [time.monotonic()]

    def watch() -> None:
        if time.monotonic() - heard[0] > PATIENCE_S:
            raise ChildTimeout

    there = {**os.environ, "JAX_PLATFORMS": "cpu"}
    with Child(of_module(__name__), there) as child:
        child.send(json.dumps([str(directory), names]).encode())
        try:
            for line in child.lines(watch):
                lines.append(line)
                heard[0] = time.monotonic()
            died = f"the process that loaded it was {child.how}" if child.code else ""
        except ChildTimeout:
            died = f"no end after {PATIENCE_S:.0f} s"
    if not lines:
        last = child.output[-1] if child.output else child.how
        raise HarnessError(
            f"The entries could not be loaded: {last}. Install the jax that reads them in "
            f"{sys.executable}, or leave out --load."
        )
    answers: dict[str, str] = {}
    for line in lines:
        answers |= json.loads(line)
    return answers, died


def _load_each(directory: str, names: Sequence[str]) -> None:
    """In the process of its own: say of each entry what kept it from being loaded, or nothing."""
    cache, compiler = module("compilation_cache"), module("lib").xla_client
    device = module("xla_bridge").local_devices(backend="cpu")[0]
    devices = compiler.DeviceList((device,))
    channel.send(b"{}")
    for name in names:
        try:
            data = cache.decompress_executable(Path(directory, name + CACHE_SUFFIX).read_bytes())
            executable, _ = cache.extract_executable_and_time(data)
            device.client.deserialize_executable(executable, devices, None)
            text = ""
        except FileNotFoundError:
            text = "it is gone"
        except Exception as error:  # whatever XLA or a library that unpacks raises
            text = f"{type(error).__name__}: {error}".splitlines()[0]
        channel.send(json.dumps({name: text}).encode())


if __name__ == "__main__":
    job = json.loads(channel.read_job())
    channel.follow_parent()
    _load_each(*job)
    channel.end()
