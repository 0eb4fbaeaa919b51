"""The entries that a program needs, in one file for CI or an image, and unpacked elsewhere.

A pack is a ZIP file: `manifest.json`, then each entry under its name, as it lies in the cache.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import lzma
import os
import shutil
import time
import zipfile
import zlib
from pathlib import Path

import msgspec

from harness.cache.directory import (
    ATIME_SUFFIX,
    CACHE_SUFFIX,
    LOCK_FILE,
    UnusableCacheError,
    locked,
)
from harness.cache.entry import Contents, lacking_features, read_contents
from harness.cache.entry_ailments import as_xla_names
from harness.cache.survey import NAME
from harness.errors import HarnessError, UsageError
from harness.records.files import is_left, replaced
from harness.records.units import counted
from harness.watch import cache_keys as keys
from harness.watch.ledger_events import ALREADY_THERE, Event, Requests, reason_text

SCHEMA = 1
MANIFEST = "manifest.json"
MOST_MANIFEST_BYTES = 64 << 20

DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError)
"""What `zipfile` raises of a damaged file, which may say that it is encrypted (RuntimeError)."""

PARTIAL = ".unpack-"
"""Begins the name of a file that is being written; JAX looks at none of these."""

JAXLIB = "jax_lib version"
NO_NAME = "its name is none that JAX gives"


class PackError(HarnessError):
    """The pack cannot be read."""


class Packed(msgspec.Struct, frozen=True):
    """One entry of a pack.

    Attributes:
        name: Its name in a cache, without `-cache`.
        jaxlib: The release that compiled it, which is in its key; empty if the ledger has none.
        path: The directory that is in its key, so that it is found in no other; empty without one.
        compile_s: What it took to compile, in seconds; None if only hits were seen.
    """

    name: str
    size_bytes: int
    sha256: str
    jaxlib: str = ""
    path: str = ""
    compile_s: float | None = None


class LeftOut(msgspec.Struct, frozen=True):
    """What is not in a pack, or was not taken from one, and why."""

    module: str
    reason: str


class Manifest(msgspec.Struct, frozen=True):
    """What a pack holds, and what its program needs besides."""

    schema: int
    made_at: float
    entries: tuple[Packed, ...]
    left_out: tuple[LeftOut, ...] = ()


class Unpacked(msgspec.Struct):
    """What came of unpacking.

    Attributes:
        left_out: What cannot be hit there, or is damaged.
    """

    written: list[str] = []
    there: list[str] = []
    left_out: list[LeftOut] = []


def pack(run: Requests, place: Path) -> Manifest:
    """Write the entries that a run hit or wrote into one file, whole or not at all.

    `run` is its ledger, on the machine where its cache lies.
    """
    asked: dict[str, Event] = {}
    missing: dict[str, LeftOut] = {}
    for event in run.events:
        if event.outcome in ("hit", "written") or event.reason == ALREADY_THERE:
            if event.compile_s is not None or event.key not in asked:
                asked[event.key] = event
        else:
            why = reason_text(event.reason, event.detail) if event.reason else "failed"
            missing[event.key or event.module] = LeftOut(event.module, why)
    left_out = [one for key, one in missing.items() if key not in asked]
    if run.events and not any(event.directory for event in run.events):
        first = run.events[0]
        raise UnusableCacheError(
            f"The program used no cache: {reason_text(first.reason, first.detail)}. Give the "
            "directory with --directory, or set jax_compilation_cache_dir in the program."
        )
    entries = []
    with replaced(place, "wb") as file, zipfile.ZipFile(file, "w") as whole:
        for event in asked.values():
            packed = _add(whole, run, event)
            if isinstance(packed, LeftOut):
                left_out.append(packed)
            else:
                entries.append(packed)
        manifest = Manifest(SCHEMA, time.time(), tuple(entries), tuple(left_out))
        whole.writestr(MANIFEST, json.dumps(msgspec.to_builtins(manifest), indent=1))
    return manifest


def _add(whole: zipfile.ZipFile, run: Requests, event: Event) -> Packed | LeftOut:
    source = Path(event.directory, event.key + CACHE_SUFFIX)
    try:
        data = source.read_bytes()
    except OSError as error:
        return LeftOut(event.module, f"{source} cannot be read: {error.strerror}")
    if bad := _bad(event.key, read_contents(io.BytesIO(data))):
        return LeftOut(event.module, bad)
    whole.writestr(event.key + CACHE_SUFFIX, data)
    digest = hashlib.sha256(data).hexdigest()
    jaxlib = next((c.values for c in event.components if c.name == JAXLIB), ())
    path = _path_in_key(run, event)
    return Packed(event.key, len(data), digest, " ".join(jaxlib), path, event.compile_s)


def _path_in_key(run: Requests, event: Event) -> str:
    """Return the cache's directory if a path in it is among the compile options that are hashed."""
    options = next((c for c in event.components if c.name == keys.COMPILE_OPTIONS), None)
    fields = run.parts.get(keys.fields_part(options.sha256)) if options else None
    inside = json.dumps(event.directory, ensure_ascii=False)[1:-1] + os.sep
    return event.directory if fields and inside in fields else ""


def _module_of(name: str) -> str:
    """Return the module of a name that JAX gives an entry, "" for any other name."""
    matched = NAME.fullmatch(name)
    return matched["module"] if matched and name.isprintable() and os.sep not in name else ""


def _bad(name: str, contents: Contents) -> str:
    """Say why an entry is not one that JAX wrote under that name; nothing if it is."""
    if contents.state not in ("readable", "needs-zstd"):
        return f"it is {contents.state}: {contents.reason}"
    if not (module := _module_of(name)):
        return NO_NAME
    if contents.module not in ("", as_xla_names(module)):
        return f"the module in it is {contents.module}"
    return ""


def unpack(place: Path, directory: Path, jaxlib: str) -> Unpacked:
    """Write the entries of a pack that programs can hit there, each whole or not at all.

    An entry that the directory has stays as it is. Programs may run meanwhile.

    `jaxlib` is the release that will read it; empty if nobody knows.

    Raises:
        UsageError: there is no such file.
        PackError: it is no pack, or damaged.
        UnusableCacheError: the directory cannot be written; what was unpacked stays.
    """
    if not place.is_file():
        raise UsageError(f"There is no file {place}. Expected what `harness cache pack` wrote.")
    found = Unpacked()
    try:
        with zipfile.ZipFile(place) as whole:
            manifest = _manifest(whole)
            directory.mkdir(parents=True, exist_ok=True)
            for partial in filter(is_left, directory.glob(PARTIAL + "*")):
                with contextlib.suppress(OSError):  # another call may be at it
                    partial.unlink()
            for packed in manifest.entries:
                target = directory / (packed.name + CACHE_SUFFIX)
                reason = _unfit(packed, directory, jaxlib)
                if not reason and target.exists():
                    found.there.append(packed.name)
                    continue
                reason = reason or _write(whole, packed, directory)
                if reason:
                    found.left_out.append(LeftOut(packed.name.rpartition("-")[0], reason))
                else:
                    found.written.append(packed.name)
    except (*DAMAGED, KeyError, msgspec.DecodeError, OSError) as error:
        # EINVAL: an offset in it is before its beginning.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise UnusableCacheError(
                f"{counted(len(found.written), 'entry')} unpacked, then it failed: {error}. Mend "
                "that and unpack again: what is there stays."
            ) from None
        raise PackError(f"{place} is no pack: {error}. `harness cache pack` writes one.") from None
    return found


def _manifest(whole: zipfile.ZipFile) -> Manifest:
    about = whole.getinfo(MANIFEST)
    if about.file_size > MOST_MANIFEST_BYTES:
        raise ValueError("its manifest is too large")
    manifest = msgspec.json.decode(whole.read(about), type=Manifest)
    if manifest.schema != SCHEMA:
        raise ValueError(f"its schema is {manifest.schema}, not {SCHEMA}")
    return manifest


def _unfit(packed: Packed, directory: Path, jaxlib: str) -> str:
    """Say why no program can hit an entry there; nothing if one can, as far as that is known."""
    if not _module_of(packed.name):
        return NO_NAME
    if packed.jaxlib and jaxlib and packed.jaxlib != jaxlib:
        return f"it is for jaxlib {packed.jaxlib}, and {jaxlib} is to read it"
    if packed.path and os.path.abspath(directory) != os.path.abspath(packed.path):
        return (
            f"its key holds the path {packed.path}: unpack it there, or set "
            "jax_persistent_cache_enable_xla_caches to none in both programs"
        )
    return ""


def _write(whole: zipfile.ZipFile, packed: Packed, directory: Path) -> str:
    partial = directory / f"{PARTIAL}{os.getpid()}-{os.urandom(4).hex()}"
    try:
        try:
            with whole.open(packed.name + CACHE_SUFFIX) as source, partial.open("xb") as file:
                shutil.copyfileobj(source, file)
        except (KeyError, *DAMAGED):
            return "its bytes cannot be read"
        with partial.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != packed.sha256:
                return "its bytes are not those that were packed"
            file.seek(0)
            contents = read_contents(file)
        if reason := _bad(packed.name, contents):
            return reason
        if contents.state == "needs-zstd":
            return contents.reason
        if lacking := lacking_features(contents.features):
            return (
                f"it is compiled for {contents.processor}, with instructions that this processor "
                f"lacks: {', '.join(lacking)}"
            )
        with locked(directory):
            if (directory / LOCK_FILE).exists():  # a size cap needs the time of use, and first
                now_ns = time.time_ns().to_bytes(8, "little")
                (directory / (packed.name + ATIME_SUFFIX)).write_bytes(now_ns)
            partial.rename(directory / (packed.name + CACHE_SUFFIX))
        return ""
    finally:
        partial.unlink(missing_ok=True)
