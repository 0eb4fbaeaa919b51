"""Signed results: who vouches for what is in a machine's folder.

A list has the SHA-256 of each file that commands read, as `sha256sum` writes it, and below that its
signature by an SSH key. Who may sign for which machine is said by a file of allowed signers, as git
has one, whose principals are names of machines. OpenSSH does both: `ssh-keygen -Y`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.errors import StoreError, UsageError
from harness.records.files import replaced

KEY = "HARNESS_SIGNING_KEY"
"""The variable that names the private key that a fleet's workers sign with."""

SIGNERS = "HARNESS_SIGNERS"
"""The variable that names the file of allowed signers; where it is set, all that is read has to be
signed."""

FOLDER, SUFFIX = "signed", ".sha256"
"""Where a machine's folder has its lists, and what ends their names."""

_NAMESPACE = "jax-harness"
_BEGIN = b"-----BEGIN SSH SIGNATURE-----"
_READ = (".jsonl", ".json", ".json5", ".gz")
"""What commands read ends so."""


class SignatureError(StoreError):
    """Results are not signed, or not by one who may."""


def sign(folder: Path, key: Path) -> int:
    """Sign what a machine's folder holds now; return how many files that is.

    Raises:
        UsageError: it holds nothing, or cannot be signed with this key.
        StoreError: the list cannot be written.
    """
    folder = folder.resolve()
    names = _files(folder)
    if not names:
        raise UsageError(f"{folder} holds no results: name the machine with --machine.")
    text = signed(folder.name, {name: digest((folder / name).read_bytes()) for name in names}, key)
    place = folder / FOLDER / f"all{SUFFIX}"
    with replaced(place, "wb", "Free space there, and sign again.", own=True) as handle:
        handle.write(text)
    for other in place.parent.glob(f"*{SUFFIX}"):
        if other != place:  # of orders of a fleet
            other.unlink()
    return len(names)


def signed(machine: str, digests: Mapping[str, str], key: Path) -> bytes:
    """Return a list with its signature.

    `digests` are of the files in the machine's folder, by their names there. `key` is a private one
    of SSH's, or a public one whose private half an agent has.
    """
    if odd := [name for name in digests if not name.isprintable()]:
        raise UsageError(f"{odd[0]!r} is no name of a file that is signed: remove it.")
    text = "".join(f"{sha}  {machine}/{name}\n" for name, sha in sorted(digests.items())).encode()
    done = _ssh_keygen("sign", "-f", str(key), "-n", _NAMESPACE, given=text)
    if done.returncode:
        raise UsageError(
            f"Results cannot be signed with {key}: {_said(done)}. Expected a private key of SSH's, "
            "such as `ssh-keygen -t ed25519 -f results_key` makes."
        )
    return text + done.stdout


def check(path: Path) -> None:
    """Hold what is read at a place against its signatures, where :data:`SIGNERS` is set.

    `path` is a results tree, one machine's folder in it, or a file in that.

    Raises:
        SignatureError: something is not signed, by one who may not, or has changed since.
        UsageError: there are no allowed signers to be read.
    """
    if not os.environ.get(SIGNERS):
        return
    path = path.resolve()
    if path.is_file():
        path = path.parents[1] if path.parent.name == "records" else path.parent
    is_machine = any((path / one).exists() for one in ("records", "machine.json", FOLDER))
    for folder in [path] if is_machine else sorted(one for one in path.iterdir() if one.is_dir()):
        check_machine(folder)


def refuse(place: Path, why: str) -> None:
    """Raise :class:`SignatureError` where :data:`SIGNERS` is set."""
    if os.environ.get(SIGNERS):
        raise SignatureError(
            f"{place}: {why}. {SIGNERS} is set, so only signed results are read: have whoever "
            "measured it run `harness sign`, or remove it."
        )


def check_machine(folder: Path) -> None:
    """Do what :func:`check` does for one machine's folder, where :data:`SIGNERS` is set."""
    listed: dict[str, str] = {}
    for place in sorted((folder / FOLDER).glob(f"*{SUFFIX}")):
        for name, sha in read_list(place.read_bytes(), folder.name, place).items():
            if listed.setdefault(name, sha) != sha:
                refuse(folder / name, "two lists are signed that differ in it")
    there = _files(folder)
    for name in listed.keys() - set(there):
        refuse(folder / name, "it was signed, and is gone")
    for name in there:
        check_file(folder / name, (folder / name).read_bytes(), listed.get(name))


def check_file(place: Path, data: bytes, sha: str | None) -> None:
    """Raise :class:`SignatureError` unless a file is what a list says of it."""
    if sha is None:
        refuse(place, "it is not signed")
    if digest(data) != sha:
        refuse(place, "it has changed since it was signed")


def read_list(data: bytes, machine: str, place: Path) -> dict[str, str]:
    """Return the digests of a machine's files, once the signature of the list is known to be good.

    Raises:
        SignatureError: it is not; `place` is named.
        UsageError: there are no allowed signers to be read.
    """
    text, begin, rest = data.partition(_BEGIN)
    signers = os.environ.get(SIGNERS, "")
    if not os.access(signers, os.R_OK):
        raise UsageError(
            f"{SIGNERS} names {signers!r}, which cannot be read: expected a file of lines such as "
            f'`MACHINE namespaces="{_NAMESPACE}" ssh-ed25519 AAAA...`.'
        )
    with tempfile.NamedTemporaryFile() as signature:
        signature.write(begin + rest)
        signature.flush()
        who = ("-f", signers, "-I", machine, "-n", _NAMESPACE, "-s", signature.name)
        done = _ssh_keygen("verify", *who, given=text)
    if done.returncode:
        refuse(place, f"nobody who may sign for {machine!r} has signed it: {_said(done)}")
    found = {}
    for line in text.decode().splitlines():
        sha, _, name = line.partition("  ")
        whose, _, inner = name.partition("/")
        if whose != machine:
            refuse(place, f"it is of the machine {whose!r}")
        found[inner] = sha
    return found


def digest(data: bytes) -> str:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def _files(folder: Path) -> list[str]:
    found: Iterable[Path] = (one for one in folder.rglob("*") if one.suffix in _READ)
    return sorted(one.relative_to(folder).as_posix() for one in found if one.is_file())


def _ssh_keygen(*words: str, given: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", "-Y", *words], input=given, capture_output=True)
    except OSError as error:
        raise UsageError(
            f"ssh-keygen cannot be started: {error.strerror}. Signing takes OpenSSH 8.2 or newer."
        ) from None


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr + b"\n" + done.stdout).decode(errors="replace").split("\n")
    return next((line.strip().rstrip(".") for line in lines if line.strip()), "it did not say why")
