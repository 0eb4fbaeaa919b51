"""Start a process of the program under test on a cache directory, and say what it did."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cache.probe.findings import Installation, ProbeError, Run, Unmet

CHILDREN = Path(__file__).parent / "children"

TIMEOUT_S = 90.0
"""A process that takes longer has hung: JAX itself waits at most 10 s for a lock."""

FORGOTTEN = ("JAX_", "XLA_", "LIBTPU_", "TF_CPP_", "PYTHONHASHSEED", "PYTHONWARNINGS")
"""Settings of the caller that would change what is measured; each row makes its own."""

SETTINGS = {
    "JAX_PLATFORMS": "cpu",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "PYTHONHASHSEED": "0",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def entries(directory: Path) -> list[Path]:
    """The cache's entries, without time stamps and lock files."""
    return sorted(directory.glob("*-cache")) if directory.is_dir() else []


def size_bytes(directory: Path) -> int:
    """What the entries of a directory take together."""
    return sum(path.stat().st_size for path in entries(directory))


@dataclass
class Started:
    """A process under way."""

    bench: Bench
    label: str
    cache: Path
    process: subprocess.Popen[str]
    files_before: int
    began_s: float = field(default_factory=time.monotonic)

    def finish(self) -> Run:
        """Wait for the end, note what happened as evidence of the row, and give it."""
        try:
            out, err = self.process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            out, err = "", f"no end after {TIMEOUT_S:.0f} s"
        except BaseException:  # Ctrl-C included: no process may be left behind
            self.stop()
            raise
        code = self.process.returncode
        last = out.strip().rpartition("\n")[2]
        report: dict[str, Any] = json.loads(last) if code == 0 and last.startswith("{") else {}
        reason = err.strip().rpartition("\n")[2] or f"exit code {code}"
        killed = code == -signal.SIGKILL and not err.startswith("no end")
        run = Run(
            label=self.label,
            requests=report.get("requests", 0),
            hits=report.get("hits", 0),
            writes=report.get("writes", 0),
            files_before=self.files_before,
            files_after=len(entries(self.cache)),
            bytes_after=size_bytes(self.cache),
            call_s=round(report.get("call_s", 0.0), 4),
            process_s=round(time.monotonic() - self.began_s, 3),
            warnings=tuple(self.bench.scrub(text) for text in report.get("warnings", ())),
            error="" if report or killed else self.bench.scrub(reason),
            killed=killed,
            correct=report.get("correct", False),
        )
        self.bench.runs.append(run)
        return run

    def wait_until(self, sign: Path) -> None:
        """Wait until the process has made a file, or has ended without making it."""
        give_up_s = time.monotonic() + TIMEOUT_S
        while not sign.exists() and self.process.poll() is None and time.monotonic() < give_up_s:
            time.sleep(0.005)

    def stop(self) -> None:
        """End the process if something went wrong before its own end."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class Bench:
    """Where one installation's rows run: a scratch folder and an interpreter.

    `runs` collects the evidence of the row under way.
    """

    def __init__(self, python: str, scratch: Path) -> None:
        self.python = python
        self.scratch = scratch
        self.runs: list[Run] = []
        self._folders = 0
        self._filled: Run | None = None

    def folder(self) -> Path:
        """A new, empty folder."""
        self._folders += 1
        path = self.scratch / f"d{self._folders}"
        path.mkdir()
        return path

    def filled(self) -> Path:
        """A directory as one earlier process left it, the entry of `plain.py` in it.

        The process runs once; later rows get its files again, byte for byte, at the same path
        (up to jax 0.10.2 the path is part of the key).
        """
        path, kept = self.scratch / "filled", self.scratch / "kept"
        shutil.rmtree(path, ignore_errors=True)
        if self._filled is None:
            path.mkdir()
            self._filled = self.fill(path)
            shutil.copytree(path, kept)
            return path
        shutil.copytree(kept, path)
        self.runs.append(self._filled)
        return path

    def fill(self, cache: Path, program: str | Path = "plain", **options: Any) -> Run:
        """Run a program on an empty directory.

        Raises:
            Unmet: Nothing was stored.
        """
        run = self.run("fill", cache, program, **options)
        if not run.fine:
            raise Unmet(f"the first process failed: {run.error or 'a result is wrong'}")
        if not run.files_after:
            raise Unmet("the first process stored nothing")
        return run

    def run(self, label: str, cache: Path, program: str | Path = "plain", **options: Any) -> Run:
        """Run a program in a process of its own, to its end; see `start` for the options."""
        return self.start(label, cache, program, **options).finish()

    def start(
        self,
        label: str,
        cache: Path,
        program: str | Path = "plain",
        *,
        named: str | None = None,
        calls: Sequence[str] = (),
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        hide: Sequence[str] = (),
        fault: Mapping[str, str] | None = None,
    ) -> Started:
        """Start a process.

        Args:
            label: What it is for.
            cache: The cache directory, and the one whose files are counted.
            program: A program of `children/`, or a file.
            named: The directory as JAX is told it, if not `cache` itself.
            calls: Which of the program's functions to call; all of them without any.
            env: Settings on top of the usual ones; None takes one away.
            cwd: The working directory.
            hide: Modules whose import is to fail.
            fault: Where the first write stops, and what happens then; see `children/child.py`.
        """
        file = program if isinstance(program, Path) else CHILDREN / f"{program}.py"
        order = {"program": str(file), "calls": list(calls), "hide": list(hide), "fault": fault}
        settings: dict[str, str | None] = {
            **{name: text for name, text in os.environ.items() if not name.startswith(FORGOTTEN)},
            **SETTINGS,
            "JAX_COMPILATION_CACHE_DIR": named or str(cache),
            **(env or {}),
        }
        process = subprocess.Popen(
            # -P: the folder of the script must not become a place to import from.
            [self.python, "-P", str(CHILDREN / "child.py"), json.dumps(order)],
            env={name: text for name, text in settings.items() if text is not None},
            cwd=cwd or self.scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        return Started(self, label, cache, process, len(entries(cache)))

    def scrub(self, text: str) -> str:
        """A message without this machine's paths."""
        text = text.replace(str(self.scratch), "DIR")
        return re.sub(r"(?<![\w/.])(/[\w.+-]+){2,}/(?=[\w.+-]+)", ".../", text)


def identify(python: str) -> Installation:
    """Ask an interpreter which JAX it has.

    Raises:
        ProbeError: It cannot be started, or cannot import JAX.
    """
    order = json.dumps({"program": str(CHILDREN / "plain.py")})
    env = {name: text for name, text in os.environ.items() if not name.startswith(FORGOTTEN)}
    try:
        done = subprocess.run(
            [python, "-P", str(CHILDREN / "child.py"), order],
            env={**env, "JAX_PLATFORMS": "cpu"},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProbeError(
            f"{python} cannot be started ({error}). Expected a Python interpreter: give its file "
            "name with --python."
        ) from error
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2].rstrip(".")
        reason = reason or f"it ended with exit code {done.returncode}"
        raise ProbeError(
            f"{python} cannot run JAX on the CPU: {reason}. Expected Python 3.11 or later with "
            "jax installed: give the interpreter of such an environment with --python."
        )
    try:
        said = json.loads(done.stdout.strip().rpartition("\n")[2])
        return Installation(
            jax=said["jax"],
            jaxlib=said["jaxlib"],
            python=said["python"],
            system=f"{platform.system()} {platform.machine()}",
            modules=tuple(said["modules"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise ProbeError(
            f"{python} did not answer as an interpreter does: {done.stdout[:80]!r}. Expected a "
            "Python interpreter: give its file name with --python."
        ) from error
