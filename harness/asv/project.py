"""An asv project: where its parts are, and what asv must know before it runs without questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from asv.config import Config
from asv.machine import Machine, MachineCollection
from asv.util import UserError

from harness.errors import UsageError
from harness.records.git import commit_of

CONFIGURATIONS = ("asv.conf.json", "asv.conf.jsonc")
"""The names under which asv 0.6.6 looks for its configuration, in this order."""


@dataclass(frozen=True)
class AsvProject:
    """Where an asv project keeps its parts; absolute paths."""

    folder: Path
    config: str
    results: Path
    benchmarks: Path
    repo: Path
    package: Path
    """The folder in `repo` that pip installs: `repo_subdir`, or all of it."""

    @property
    def commit(self) -> str:
        """The full hash of HEAD; "" outside a repository."""
        return commit_of(self.repo).hash

    @classmethod
    def load(cls, config: Path) -> AsvProject:
        """Read a configuration; asv's UserError if it cannot be read."""
        conf = Config.load(str(config))
        folder = config.resolve().parent
        repo = folder / conf.repo  # a remote repository is no folder: then the project's own
        repo = repo if repo.is_dir() else folder
        package = repo / conf.repo_subdir
        return cls(
            folder,
            config.name,
            folder / conf.results_dir,
            folder / conf.benchmark_dir,
            repo,
            package if package.is_dir() else repo,
        )

    @classmethod
    def read(cls, config: Path) -> AsvProject:
        """Read the configuration that a user names.

        Raises:
            UsageError: there is none, or asv cannot read it.
        """
        if not config.exists() and config.with_suffix(".jsonc").is_file():
            config = config.with_suffix(".jsonc")
        if not config.is_file():
            raise UsageError(
                f"There is no asv project here: {config} does not exist. `harness init` writes "
                "one, or name yours with --config."
            )
        try:
            return cls.load(config)
        except UserError as error:
            raise UsageError(f"asv cannot read {config}: {error}") from error

    @classmethod
    def find(
        cls, folders: Iterable[Path], names: Sequence[str] = CONFIGURATIONS
    ) -> AsvProject | None:
        """Read the first configuration there is in `folders`."""
        files = (folder / name for folder in folders for name in names)
        return next((cls.load(file) for file in files if file.is_file()), None)


def know_machine(name: str = "") -> str:
    """Tell asv about a machine ("": this one), for it asks questions about one it does not know.

    `asv machine --yes --machine NAME` is no way to do it: asv 0.6.6 then stores no other field.

    Returns:
        What was done; "" where asv knows the machine.
    """
    name = name or Machine.get_unique_machine_name()
    try:
        MachineCollection.load(name)
    except UserError:
        MachineCollection.save(name, {**Machine.get_defaults(), "machine": name})
        return f"asv: added the machine {name} to {MachineCollection.get_machine_file_path()}"
    return ""
