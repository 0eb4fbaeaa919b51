"""What differs in two parts of a key that a ledger keeps, in people's words.

Of the accelerator JAX hashes eight bytes. A ledger keeps what they are made of: the devices of the
process, its number, and on CPUs the processor with its features. Compile options it keeps field by
field.
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


def accelerator_changes(a: str, b: str) -> tuple[str, ...]:
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


# Compile options

MOST_CHARACTERS = 60
"""A longer value is left to the lines."""

WORDS = {
    "allow_spmd_sharding_propagation_to_parameters": "XLA may not choose an argument's sharding "
    "any more, or may again",
    "allow_spmd_sharding_propagation_to_output": "XLA may not choose a result's sharding any more, "
    "or may again",
    "device_assignment": "the devices that it runs on",
    "num_partitions": "the number of partitions",
    "num_replicas": "the number of replicas",
    "use_shardy_partitioner": "which partitioner is used, Shardy or GSPMD",
    "use_spmd_partitioning": "whether it is partitioned",
    "exec_time_optimization_effort": "the effort for a short run",
    "memory_fitting_effort": "the effort to fit into memory",
    "optimization_level": "the level of optimization",
    "xla_backend_optimization_level": "the level of optimization",
    "env_option_overrides": "the compiler options of jax.jit",
}
"""Fields whose names a user does not know; others are called by their own."""


@dataclass(frozen=True)
class OptionChange:
    """One field that differs.

    Attributes:
        field: XLA's name of it, without where it lies.
        cause: What it means, with both values where they are short; empty for what only follows.
    """

    field: str
    cause: str
    line: str


def option_changes(a: str, b: str) -> tuple[OptionChange, ...]:
    """Return the fields that differ between what two ledgers keep of their compile options."""
    old, new = json.loads(a), json.loads(b)
    return tuple(
        _change(name, old.get(name, "(not set)"), new.get(name, "(not set)"))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    )


def _change(name: str, old: str, new: str) -> OptionChange:
    field = name.rpartition(".")[2]
    cause = WORDS.get(field, field)
    if "may not" in cause:  # a value for each argument: their number says nothing of its own
        cause = cause if old.count(",") == new.count(",") else ""
    elif max(len(old), len(new)) <= MOST_CHARACTERS:
        cause = f"{cause}, {old} became {new}"
    return OptionChange(field, cause, f"{name}: {old} -> {new}")
