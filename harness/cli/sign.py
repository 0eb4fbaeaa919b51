"""`harness sign`: vouch for results that others are to read."""

from __future__ import annotations

from pathlib import Path

from harness.cli import options
from harness.cli.options import Option
from harness.records import signatures
from harness.records.environment import machine_name
from harness.records.printable import printable
from harness.records.store import machine_folder


@options.command(
    key=Option(
        metavar="FILE", envvar=signatures.KEY, help="A private key, as ssh-keygen makes it."
    ),
)
def sign(
    key: Path, results: options.ResultsTree = Path("results"), machine: options.Machine = None
) -> None:
    r"""Sign the results of this machine, for those who read no others.

    \b
      ssh-keygen -t ed25519 -f results_key       a key of one's own
      harness sign --key results_key             sign what results/MACHINE/ holds now
      HARNESS_SIGNERS=signers harness report     read signed results only

    \b
    `signers` is a file of lines: for which machines which key may sign (* stands for any text):
      box,ci-* namespaces="jax-harness" ssh-ed25519 AAAA...

    What is measured later is signed by another `harness sign`. docs/reliability.md has the rest.

    \b
    Exit codes: 0 fine; 2 there is no such key, or no results; 4 the list cannot be written.
    """
    folder = machine_folder(results, machine or machine_name())
    print(printable(f"{signatures.sign(folder, key)} files of {folder} signed."))
