"""Targets that are compiled for and not run: a GPU or TPU that this machine need not have.

The compilers come with JAX's plugins, which work without driver and device. What they must know of
a GPU stands in a text (XLA's GpuTargetConfigProto); TPUs are known to libtpu by name.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from harness.errors import UsageError
from harness.records.environment import installed
from harness.targets.target import Target

SUFFIX = ".pbtxt"

DATA = Path(__file__).parent / "data"

DEVICES_OF_A_GPU = 2
"""How many devices a described GPU stands for: what `sharded` has on a CPU as well."""

_TPUS = {
    # name: the device, the topology of one host, and how many devices JAX sees in it
    "v6e": ("TPU v6e", "v6e:2x2", 4),
    "v5e": ("TPU v5e", "v5e:2x2", 4),
    "v5p": ("TPU v5p", "v5p:2x2x1", 4),
    "v7x": ("TPU7x", "tpu7x:2x2x1", 8),
    "v4": ("TPU v4", "v4:2x2x1", 8),
    "v3": ("TPU v3", "v3:2x2", 8),
}
"""TPUs that libtpu 0.0.42 to 0.0.50 compile for without a device."""

_TPU_ENVIRONMENT = {
    # Without these libtpu asks Google's metadata server what it runs on, and waits.
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",  # any will do: the topology says what is built for
    "TPU_WORKER_ID": "0",
    "TPU_WORKER_HOSTNAMES": "localhost",
    # Only one process may hold a TPU, and a lock in /tmp sees to it. Here there is none to hold,
    # and a second process would be refused (libtpu 0.0.42 to 0.0.50).
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_LOG_DIR": "disabled",  # else files pile up in /tmp/tpu_logs
}

_DESCRIPTION_HELP = (
    "the text form of XLA's GpuTargetConfigProto, which XLA_FLAGS=--xla_dump_to=DIR writes as "
    "*.gpu_target_config.pbtxt on a machine that has the GPU"
)


def gpu(name: str, description: str, file: str = "") -> Target:
    """Return the target of a GPU with that description."""
    called = re.search(r'^\s*device_description_str:\s*"([^"\n]+)"', description, re.M)
    return Target(
        name,
        "cpu",
        _gpu_compiler_lacking,
        compile_only=called[1] if called else name.partition(":")[2],
        file=file,
        description=description,
        devices=DEVICES_OF_A_GPU,
    )


def known() -> list[Target]:
    """Return the targets that need no file of the user's."""
    tpus = [
        Target(
            f"tpu:{name}",
            "cpu",
            _tpu_compiler_lacking,
            compile_only=device,
            environment=_TPU_ENVIRONMENT,
            description=topology,
            devices=devices,
        )
        for name, (device, topology, devices) in _TPUS.items()
    ]
    return [gpu("gpu:h200", (DATA / "h200.pbtxt").read_text()), *tpus]


def is_file(name: str) -> bool:
    """Tell whether the name of a target says where a description is."""
    family, colon, rest = name.partition(":")
    return bool(family and colon) and (rest.endswith(SUFFIX) or "/" in rest)


def from_file(name: str, taken: frozenset[str]) -> Target:
    """Return the target `gpu:STEM` for `gpu:FILE.pbtxt`.

    Raises:
        UsageError: the file is no description of a GPU, or its name is none for a target; `taken`
            are names that it cannot have.
    """
    family, _, path = name.partition(":")
    file = Path(path).expanduser()
    if family != "gpu":
        raise UsageError(
            f"{name!r}: only a GPU is described by a file, as gpu:FILE{SUFFIX}; TPUs are known by "
            f"name: {', '.join(f'tpu:{tpu}' for tpu in _TPUS)}."
        )
    stem = file.stem
    if file.suffix != SUFFIX or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", stem):
        raise UsageError(
            f"{name!r}: the target is called after its file, so that must have a plain name of "
            f"letters, digits, '-' and '_', and end in {SUFFIX}; rename {file.name!r}, for example "
            f"to a100{SUFFIX}."
        )
    if stem.lower() in taken:
        raise UsageError(
            f"{name!r}: the target would be called gpu:{stem}, and {stem.lower()!r} is the name of "
            f"one that is built in; rename {file.name!r}, for example to my-{stem}{SUFFIX}."
        )
    try:
        description = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"The target file {file} cannot be read: {error.strerror}. Expected "
            f"{_DESCRIPTION_HELP}."
        ) from error
    except UnicodeDecodeError:
        raise UsageError(
            f"The target file {file} holds no text. Expected {_DESCRIPTION_HELP}."
        ) from None
    if not re.search(r"^[^#\n]*\bgpu_device_info\b", description, re.M):  # XLA would crash
        what = "has no gpu_device_info in it" if description.strip() else "is empty"
        raise UsageError(f"The target file {file} {what}. Expected {_DESCRIPTION_HELP}.")
    return gpu(f"gpu:{stem}", description, str(file))


def _gpu_compiler_lacking() -> str | None:
    wanted = installed("jaxlib")
    problems = []
    for cuda in ("cuda13", "cuda12"):
        names = (f"jax-{cuda}-pjrt", f"jax-{cuda}-plugin")
        versions = {name: installed(name) for name in names}
        if set(versions.values()) == {wanted}:
            return None
        if any(versions.values()):
            remedy = " ".join(f"{name}=={wanted}" for name in names)
            found = " and ".join(
                f"{name} is {version or 'not installed'}"
                for name, version in versions.items()
                if version != wanted
            )
            problems.append(f"{found}, and jaxlib {wanted} needs its own: pip install {remedy}")
    return problems[0] if problems else "jax-cuda13-pjrt is not installed (extra 'targets')"


def _tpu_compiler_lacking() -> str | None:
    if not importlib.util.find_spec("libtpu"):
        return "libtpu is not installed (extra 'targets')"
    return None
