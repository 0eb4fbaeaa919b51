"""By what JAX tells programs apart: the parts that it hashes into a key, and its settings.

JAX hashes part after part, and then hands its name to `_log_cache_key_hash`. A hash object of ours,
which holds what it is fed, has the very bytes, whatever parts a release has.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import operator
import os
from collections.abc import Mapping, Sequence
from typing import Any

from harness.jaxhooks import jax_names
from harness.jaxhooks.events import Component
from harness.jaxhooks.parts import (
    Parts,
    accelerator_part,
    fields_part,
    located_part,
    settings_part,
    text_part,
)

COMPUTATION = "computation"
COMPILE_OPTIONS = "compile_options"
ACCELERATOR = "accelerator_config"

LARGE_BYTES = 2**20
"""A computation of more bytes is kept without its constants of more than LARGE_ELEMENTS."""

LARGE_ELEMENTS = 64

_LONGEST_VALUE = 2000


class KeyParts:
    """The parts of one key: to JAX, the hash object that it makes the key with."""

    def __init__(self) -> None:
        self.components: list[Component] = []
        self.computation_bytes = 0
        self.options = b""
        self._together = hashlib.sha256()
        self._chunks: list[bytes] = []

    def update(self, data: bytes) -> None:
        """Take more of the part that is being hashed."""
        self._together.update(data)
        self._chunks.append(bytes(data))

    def digest(self) -> bytes:
        """Return what JAX makes the key of."""
        return self._together.digest()

    def end_part(self, name: str) -> None:
        """Take it that a part is hashed whole."""
        chunks, self._chunks = self._chunks, []
        whole = b"".join(chunks)
        values: tuple[str, ...] = ()
        if name == COMPUTATION:
            self.computation_bytes = len(whole)
        elif name == COMPILE_OPTIONS:
            self.options = whole
        else:
            values = tuple(_readable(chunk) for chunk in chunks)
        self.components.append(Component(name, hashlib.sha256(whole).hexdigest(), values))

    def proves(self, key: str) -> bool:
        """Return whether the parts, hashed in order, give the key that JAX made."""
        return key.endswith(self.digest().hex()) and not self._chunks

    def keep(self, module: Any, devices: Any, parts: Parts, locations: bool) -> None:
        """Keep the text, the options' fields and the topology, where no earlier request has."""
        limit = LARGE_ELEMENTS if self.computation_bytes > LARGE_BYTES else None
        for component in self.components:
            sha256 = component.sha256
            if component.name == COMPUTATION:
                parts.keep(text_part(sha256), lambda: _module_text(module, False, limit))
                if locations:
                    parts.keep(located_part(sha256), lambda: _module_text(module, True, limit))
            elif component.name == COMPILE_OPTIONS:
                parts.keep(fields_part(sha256), lambda: _option_fields(self.options))
            elif component.name == ACCELERATOR:
                parts.keep(accelerator_part(sha256), lambda: _accelerator(devices))


def keep_settings(settings: Mapping[str, str], parts: Parts) -> str:
    """Keep JAX's settings; return the hash that they are kept under."""
    text = json.dumps(settings, sort_keys=True)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    parts.keep(settings_part(sha256), lambda: text)
    return sha256


def _accelerator(devices: Any) -> str:
    """Return this process's devices, those of all, and XLA's topology in hexadecimal digits."""
    client = devices.flat[0].client
    # Where a program is only compiled, none is of this process.
    local = client.local_devices() or client.devices()
    fields = {
        "kinds": [device.device_kind for device in local],
        "devices": client.device_count(),
        "processes": len({device.process_index for device in client.devices()}),
        "process": client.process_index(),
        "topology": jax_names.topology(devices).hex(),
    }
    return json.dumps(fields, ensure_ascii=False)


def _readable(chunk: bytes) -> str:
    with contextlib.suppress(UnicodeDecodeError):
        text = chunk.decode()
        if text.isprintable() or "\n" in text:
            return text[:_LONGEST_VALUE]
    return "0x" + chunk[: _LONGEST_VALUE // 2].hex()


def module_name(computation: Any) -> str:
    """Return the name of a StableHLO module, as it stands in the entry's file name."""
    return str(computation.operation.attributes["sym_name"].value)


def _module_text(computation: Any, locations: bool, largest_constant: int | None) -> str:
    """Print a StableHLO module; constants of more elements than the limit are left out."""
    return str(
        computation.operation.get_asm(
            enable_debug_info=locations, large_elements_limit=largest_constant
        )
    )


def _option_fields(serialized: bytes) -> str:
    """Return the options that JAX serialised into the key as field name to printed value."""
    options = jax_names.compile_options(serialized)
    fields = _attributes(options, "", skip={"executable_build_options"})
    build = options.executable_build_options
    fields |= _attributes(build, "executable_build_options.", skip={"debug_options"})
    # A text proto, whose first line is a changing marker and no field.
    for line in str(build.debug_options).splitlines():
        name, colon, value = line.strip().partition(": ")
        if colon and name.startswith("xla"):
            label = f"debug_options.{name}"
            fields[label] = f"{fields[label]}, {value}" if label in fields else value
    return json.dumps(fields, ensure_ascii=False)


def _attributes(options: Any, prefix: str, skip: set[str]) -> dict[str, str]:
    fields = {}
    for name in dir(options):
        if name.startswith("_") or name in skip:
            continue
        try:
            value = getattr(options, name)
        # An option that this release refuses to read back (XLA raises its own types here) leaves
        # the rest readable.
        except Exception:
            continue
        if not callable(value) and " at 0x" not in repr(value):
            fields[prefix + name] = repr(value)
    return fields


class SettingsReader:
    """Reads JAX's configuration as a thread sees it, cheaply: at every build."""

    def __init__(self, others: Sequence[str] = jax_names.OTHER_SETTINGS) -> None:
        self._config = jax_names.module("config")
        self._names = tuple(str(name) for name in self._config.trace_context_names())
        states = {name: self._state(name) for name in others if name not in self._names}
        self._others = tuple(name for name, state in states.items() if state is not None)
        self._states = tuple(states[name] for name in self._others)
        self._known = functools.lru_cache(1_000)(self._texts)

    def now(self) -> dict[str, str]:
        """Return what is part of a cache's key, and what else changes what is compiled."""
        values = self._config.trace_context()
        rest = tuple([read() for read in self._states])
        rest += tuple([os.environ.get(name) for name in jax_names.FLAGS])
        try:
            return self._known(values, rest)
        except TypeError:  # something in it has no hash
            return self._texts(values, rest)

    def _texts(self, values: Any, rest: Any) -> dict[str, str]:
        names = zip(self._names, values, strict=False)
        texts = {name: _setting_text(value) for name, value in names}
        for name, value in zip(self._others + jax_names.FLAGS, rest, strict=True):
            if value is not None:
                texts[name] = str(value)
        return texts

    def _state(self, name: str) -> Any:
        """Return what reads a setting; None where this release has none of that name."""
        state: Any = getattr(self._config, name.removeprefix("jax_"), None)
        if hasattr(state, "value"):
            return lambda: state.value
        # One that is the same on all threads is no attribute of JAX's module.
        values = self._config.config.values
        return functools.partial(operator.getitem, values, name) if name in values else None


def _setting_text(value: Any) -> str:
    """Return a setting as text that is the same for equal settings, in every process."""
    if type(value).__name__ == "AxisEnv":  # has no text of its own
        sizes = getattr(value, "axis_sizes", {})
        return ", ".join(f"{name}={size}" for name, size in dict(sizes).items())
    if type(value).__name__ == "XlaMetadata":  # nor has this
        return ", ".join(f"{name}={setting}" for name, setting in sorted(value.val.items()))
    text = str(value)
    return type(value).__name__ if " at 0x" in text else text
