"""An asv project: where its parts are, and what asv must know before it runs without questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from asv.config import Config
from asv.machine import Machine, MachineCollection
from asv.util import UserError

from harness.errors import UsageError

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
        from harness.records.git import commit_of  # not where asv only reads

        return commit_of(self.repo).hash

    @classmethod
    def load(cls, config: Path) -> AsvProject:
        """Read a configuration; see :func:`configuration`."""
        conf = configuration(config)
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
        """Read the configuration that a user names."""
        if not config.exists() and config.with_suffix(".jsonc").is_file():
            config = config.with_suffix(".jsonc")
        if not config.is_file():
            raise UsageError(
                f"There is no asv project here: {config} does not exist. `harness init` writes "
                "one, or name yours with --config."
            )
        return cls.load(config)

    @classmethod
    def find(
        cls, folders: Iterable[Path], names: Sequence[str] = CONFIGURATIONS
    ) -> AsvProject | None:
        """Read the first configuration there is in `folders`."""
        files = (folder / name for folder in folders for name in names)
        return next((cls.load(file) for file in files if file.is_file()), None)


def configuration(file: Path) -> Any:
    """Return a configuration as asv reads it."""
    try:
        conf = Config.load(str(file))
    except (UserError, OSError, ValueError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise UsageError(f"asv cannot read {file}: {reason}.") from None
    settings = {**vars(Config()), "repo": "", "version": 1, "build_cache_size": 2}
    for name, value in vars(conf).items():
        meant = get_close_matches(name, settings, 1, 0.85)
        if name not in settings and meant:
            raise UsageError(f"{file}: asv knows no {name!r}. Did you mean {meant[0]!r}?")
        usual = settings.get(name)
        if isinstance(usual, str | list | dict) and not isinstance(value, type(usual)):
            kind = {str: "a text", list: "a list", dict: "an object"}[type(usual)]
            raise UsageError(f"{file}: {name} is {value!r:.60}; expected {kind}.")
    return conf


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
