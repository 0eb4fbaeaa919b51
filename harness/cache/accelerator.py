"""What the fingerprint of an accelerator in a key is of, in people's words, and what changed.

JAX hashes eight bytes. A ledger keeps what they are made of: the devices of the process, its
number, and on CPUs the processor with its features. An entry is found again where all are equal.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from harness.cache.entry import Machine
from harness.records.units import some

MOST_FEATURES = 8
"""So many features are named; the rest are counted."""


@dataclass(frozen=True)
class Accelerator:
    """What a ledger keeps of the devices that a program was compiled for.

    Attributes:
        local: The devices of the process by kind, such as `2 cpu`.
        devices: How many there are in all processes.
        processes: How many processes there are; 0 where an older ledger does not tell.
        processor: The processor as LLVM names it, such as `znver5`; empty where it is not told.
    """

    local: str
    devices: int
    processes: int
    process: int
    processor: str
    features: frozenset[str]

    @staticmethod
    def read(text: str) -> Accelerator:
        """Read the part of a ledger."""
        kept = json.loads(text)
        machine = Machine()
        machine.look(bytes.fromhex(kept["topology"]))
        kinds = Counter(kept["kinds"]).items()
        return Accelerator(
            ", ".join(f"{count} {kind}" for kind, count in kinds),
            kept["devices"],
            kept.get("processes", 0),
            kept["process"],
            machine.processor,
            frozenset(machine.features),
        )

    def __str__(self) -> str:
        words = [self.local, f"process {self.process}"]
        words += [self.processor, f"{len(self.features)} features"] if self.processor else []
        return ", ".join(words)


def changes(a: str, b: str) -> tuple[str, ...]:
    """Say what differs between what two ledgers keep of their accelerators; nothing if unknown."""
    old, new = Accelerator.read(a), Accelerator.read(b)
    said = []
    if old.local != new.local:
        said.append(f"the devices of the process, {old.local} became {new.local}")
    if old.process != new.process:
        said.append(f"another process of the run, {old.process} became {new.process}")
    if old.processes != new.processes and old.processes and new.processes:
        said.append(f"the processes of the run, {old.processes} became {new.processes}")
    if old.devices != new.devices and old.local == new.local:
        said.append(f"the devices of all processes, {old.devices} became {new.devices}")
    if old.processor != new.processor:
        said.append(f"the processor, {old.processor} became {new.processor}")
    lost, gained = sorted(old.features - new.features), sorted(new.features - old.features)
    said += [
        f"the processor's features, {how} {some(names, MOST_FEATURES)}"
        for how, names in (("without", lost), ("with", gained))
        if names
    ]
    return tuple(said)
