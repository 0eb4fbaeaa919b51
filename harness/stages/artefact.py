"""Artefacts: what one process makes of a function and another loads; checked before, and after."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np

from harness.jaxhooks import jax_names
from harness.stages.scenarios.scenario import Artefact, NoArtefact
from harness.targets.host import cpu_features
from harness.workload.jitted import Jitted

RTOL = {"float16": 1e-2, "bfloat16": 3e-2, "float32": 1e-4, "complex64": 1e-4}
"""Relative tolerance of results by dtype, to the largest value; 1e-8 for wider floats, none for
everything else."""

OTHER_RESULT = (
    "the result is not that of the function itself: an artefact has in it what the function closed "
    "over where it was made, and that, or the inputs, may be other ones in each process"
)

NOT_JIT = "only what jax.jit returns can be exported, or be called by what is loaded"

_SHOWN = 8
"""So many features of a processor are named; the rest are counted."""

CALLS_BACK = (
    "it calls Python back (jax.debug.print, jax.pure_callback, ...), which no file can hold"
)
NONE = "there is no artefact: the process that makes it ended before it had"
DAMAGED = "the artefact is damaged: it has other bytes than were written"

_REASONS = {
    "flatbuffers": "jax.export needs the package flatbuffers to serialise, and it is not "
    "installed: pip install 'jax-harness[export]'",
    "emit_python_callback": CALLS_BACK,
}
"""What an error means that has these words."""


class Header(msgspec.Struct):
    """What stands beside an artefact, as JSON."""

    reason: str = ""
    """Why there is none."""
    sha256: str = ""
    call: dict[str, Any] = msgspec.field(default_factory=dict)
    """What loads it needs besides."""
    release: str = ""
    device: str = ""
    features: list[str] = msgspec.field(default_factory=list)
    """The processor's, as the system names them."""


def _here(**fields: Any) -> Header:
    device = jax.devices()[0]
    return Header(
        release=f"jax {jax_names.version('jax')} with jaxlib {jax_names.version('jaxlib')}",
        device=f"{device.device_kind} ({device.platform})",
        features=sorted(cpu_features()),
        **fields,
    )


def path(folder: Path, case: str) -> Path:
    """Return the file of a case's artefact; its header has the suffix `.json`."""
    return folder / hashlib.sha256(case.encode()).hexdigest()[:16]


def make(build: Any, artefact: Artefact, file: Path) -> None:
    """Store an artefact of a :class:`harness.stages.build.Build`, or why there is none."""
    try:
        own = build.jitted
        if not build.has_trace or (isinstance(own, Jitted) and not own.takes_shapes):
            raise NoArtefact(NOT_JIT)
        for _, step in build.steps():
            step()
        stored, call = artefact.make(build)
        file.write_bytes(stored)
        header = _here(sha256=hashlib.sha256(stored).hexdigest(), call=call)
    except (Exception, SystemExit) as error:  # of JAX, of pickle, or of a user's function
        header = _here(reason=_reason(error))
    file.with_suffix(".json").write_bytes(msgspec.json.encode(header))


def _reason(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, NoArtefact):
        return text
    line = next(iter(text.strip().splitlines()), "")
    reasons = (reason for words, reason in _REASONS.items() if words in text)
    line = re.sub(" at 0x[0-9a-f]+", "", line)  # other ones in each process
    return next(reasons, f"{type(error).__name__}: {line}".removesuffix(": "))


def refusal(file: Path) -> tuple[str, dict[str, Any]]:
    """Return why an artefact must not be loaded here, "" where it may; and what loading needs."""
    try:
        header = msgspec.json.decode(file.with_suffix(".json").read_bytes(), type=Header)
        if header.reason:
            return f"no artefact can be made: {header.reason}", {}
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return NONE, {}
    except msgspec.MsgspecError:
        return f"the header of the artefact is damaged: {file.with_suffix('.json').name}", {}
    here = _here()
    for what in ("release", "device"):
        before, now = getattr(header, what), getattr(here, what)
        if before != now:
            return f"the artefact is of another {what}: made with {before}, this is {now}", {}
    if differing := sorted(set(header.features) ^ set(here.features)):
        names = ", ".join(differing[:_SHOWN])
        more = f" and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        return f"the artefact is of another processor: only one of both has {names}{more}", {}
    if digest != header.sha256:
        return DAMAGED, {}
    return "", header.call


def problem(expected: Any, result: Any) -> str:
    """Return how the result of what was loaded differs from the function's own; "" if equal."""
    (wanted, tree), (given, other_tree) = map(jax.tree_util.tree_flatten, (expected, result))
    equal = str(tree) == str(other_tree) and all(map(_close, wanted, given))
    return "" if equal else OTHER_RESULT


def _close(wanted: Any, given: Any) -> bool:
    """Return whether two arrays, or numbers, are equal within :data:`RTOL`."""
    one, other = _plain(wanted), _plain(given)
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    if one.dtype.kind in "biu":
        return bool(np.array_equal(one, other))
    rtol = RTOL.get(one.dtype.name, 1e-8)
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    one, other = one.astype(wide), other.astype(wide)
    finite = np.abs(one[np.isfinite(one)])
    atol = rtol * float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True))


def _plain(leaf: Any) -> Any:
    if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)
