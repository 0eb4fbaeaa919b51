"""The process that compiles the module of a file, started by :mod:`harness.ir.module`.

    python -m harness.ir.module_child FILE TARGET

prints what :mod:`harness.ir.build` calls a message: what was built, or why nothing was.
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path
from typing import Any

import jax
import msgspec

from harness import targets
from harness.ir.build import BuiltTexts, Failed, Message
from harness.ir.module import is_of_several
from harness.jaxhooks import jax_names
from harness.program.compiler import causes
from harness.program.compiler.inside import inside
from harness.program.compiler.recording import recorded
from harness.program.compiler.structure import Structure
from harness.program.kernels import written
from harness.targets import topologies

_CONSTANT = re.compile(r'\bdense<"0x([0-9A-Fa-f]+)"')
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")

_ITSELF = "-"
"""The file that MLIR names for a line of the module itself."""

_FIRST = "module @first { func.func @main() { return } }"
"""What the first compile of a process pays is no module's own."""

_EXPECTED = (
    "expected a module of one device: StableHLO (text or bytecode), HLO as it is before XLA "
    "optimises it (text or proto), or what `jax.export` writes; .gz of any"
)


def parsed(data: bytes) -> Any:
    """Return the module of a file's content, parsed.

    Raises:
        ValueError: it is none, or not of one device.
    """
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    if not data.strip():
        raise ValueError("it is empty")
    hlo, given = None, data
    if data.startswith(b"ML\xefR") or not _BINARY.search(data):
        text = "" if data.startswith(b"ML") else data.decode("utf-8-sig")
        if re.match(r"(\s|//.*\n|/\*.*?\*/)*HloModule\b", text):
            hlo = jax_names.hlo_module(text)
        given = text.encode() or data
    elif data.startswith(b"\n"):  # a HloModuleProto, or the HloProto of a dump around it
        hlo = jax_names.hlo_module(_first_field(data))
    else:
        try:
            given = jax.export.deserialize(bytearray(data)).mlir_module_serialized
        except Exception:  # of a reader of flatbuffers, which tells where it stumbles
            raise ValueError("it is in no format of a module") from None
    header = hlo.to_string().partition("\n")[0] if hlo is not None else ""
    if "is_scheduled=true" in header:
        raise ValueError("it is HLO that XLA has optimised already, and cannot compile again")
    module = jax_names.mlir_module(hlo if hlo is not None else given)
    if is_of_several(header) or is_of_several(str(module)):
        raise ValueError("it is a module of several devices")
    return module


def _first_field(data: bytes) -> bytes:
    """Return the module of a `HloProto`, which is its first field; else the data as they are."""
    length, at = 0, 1
    while data[at] & 0x80:
        length |= (data[at] & 0x7F) << 7 * (at - 1)
        at += 1
    length |= data[at] << 7 * (at - 1)
    inner = data[at + 1 : at + 1 + length]
    return inner if inner.startswith(b"\n") and len(inner) == length else data  # else a name


def _compiled(file: Path, name: str) -> Message:
    target = targets.find(name)
    device = jax.devices()[0]
    if target.description:
        device = topologies.describe(target.name, target.description).device
    try:
        module = parsed(file.read_bytes())
    except OSError as error:
        return Failed(f"{file} cannot be read: {error.strerror or error}")
    except Exception as error:  # of the parsers of MLIR, HLO, protos and flatbuffers
        return Failed(f"{file} is no module that can be compiled: {reason(error)}; {_EXPECTED}")
    jax_names.compile_module(jax_names.mlir_module(_FIRST), device)()
    step = jax_names.compile_module(module, device)
    made = []
    try:
        events = recorded(lambda: made.append(step()))
    except Exception as error:
        return Failed(f"{file} cannot be compiled for {target.name}: {reason(error)}")
    whole = "".join(one.to_string() for one in made[0].hlo_modules())
    within = inside(events, whole)
    for kernel in within.kernels if within else ():
        kernel.file = str(file) if kernel.file == _ITSELF else kernel.file
    built = BuiltTexts("", inside=within, events=events, written=[*written(whole, ())])
    if within is not None:
        size = sum(len(one) // 2 for one in _CONSTANT.findall(str(module)))
        shape = Structure(0, size, None, None, [], [], jax.__version__, target.family)
        built.causes = causes.causes(shape, within, within.wall_s, target.name)
    return built


def reason(error: Exception) -> str:
    """Return what a parser or compiler complains of, in a line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [repr(error)]
    text = next((line for line in lines if "error:" in line), lines[0])
    text = re.sub(r'.*error: "-":0:0: ', "", text)  # bytecode has no lines
    return re.sub(r'.*error: "-":(\d+):(\d+): ', r"line \1, column \2: ", text)[:300]


if __name__ == "__main__":
    print(msgspec.json.encode(_compiled(Path(sys.argv[1]), sys.argv[2])).decode())
