"""Start processes of a program on a cache directory, and say what each did."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests import forks
from tests.cache.filled import environment

HERE = Path(__file__).parent

TIMEOUT_S = 90.0
"""A process that takes longer has hung: JAX itself waits at most 10 s for a lock."""

DISK_BYTES = 256 * 1024


class Unmet(Exception):
    """What a row needs, or expects on its way, did not come true; the text says what happened."""


class NotApplicable(Exception):
    """This machine or this JAX cannot show what a row asks about; the text is the reason."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What one process did to a cache directory."""

    requests: int = 0
    hits: int = 0
    files_before: int = 0
    files_after: int = 0
    bytes_after: int = 0
    call_s: float = 0.0
    warnings: tuple[str, ...] = ()
    error: str = ""
    killed: bool = False
    correct: bool = False

    @property
    def fine(self):
        """Whether the process ran to its end and its results were right."""
        return self.correct and not self.error and not self.killed

    @property
    def hit(self):
        """Whether the cache answered everything it was asked."""
        return self.fine and self.requests == self.hits > 0

    @property
    def told(self):
        """What it did, in a few words."""
        if self.killed:
            return "was killed"
        if self.error:
            return f"failed: {self.error}"
        if not self.correct:
            return "gave a wrong result"
        how = "hits" if self.hit else "compiles"
        return f"{how} and warns" if self.warnings else how


def entries(directory):
    """The cache's entries, without time stamps and lock files."""
    return sorted(directory.glob("*-cache")) if directory.is_dir() else []


def size_bytes(directory):
    """What the entries of a directory take together."""
    return sum(path.stat().st_size for path in entries(directory))


@dataclass
class Started:
    """A process under way."""

    bench: "Bench"
    label: str
    cache: Path
    process: subprocess.Popen
    files_before: int

    def finish(self):
        """Wait for the end, and give what happened."""
        try:
            done = forks.finished(self.process, TIMEOUT_S)
            code, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            code, out, err = None, "", f"no end after {TIMEOUT_S:.0f} s"
        last = out.strip().rpartition("\n")[2]
        report = json.loads(last) if code == 0 and last.startswith("{") else {}
        killed = code == -signal.SIGKILL
        reason = err.strip().rpartition("\n")[2] or f"exit code {code}"
        return Run(
            files_before=self.files_before,
            files_after=len(entries(self.cache)),
            bytes_after=size_bytes(self.cache),
            call_s=round(report.get("call_s", 0.0), 4),
            warnings=tuple(map(self.bench.scrub, report.get("warnings", ()))),
            error="" if report or killed else self.bench.scrub(reason),
            killed=killed,
            **{name: report[name] for name in ("requests", "hits", "correct") if report},
        )

    def wait_until(self, sign):
        """Wait until the process has made a file, or has ended without making it."""
        give_up_s = time.monotonic() + TIMEOUT_S
        while not sign.exists() and self.process.poll() is None and time.monotonic() < give_up_s:
            time.sleep(0.005)

    def stop(self):
        """End the process if something went wrong before its own end."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


class Bench:
    """Where one installation's rows run."""

    def __init__(self, python, scratch):
        self.python = python
        self.scratch = scratch
        self._folders = 0
        self._filled = None

    def folder(self):
        """A new, empty folder."""
        self._folders += 1
        path = self.scratch / f"d{self._folders}"
        path.mkdir()
        return path

    def filled(self):
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
        else:
            shutil.copytree(kept, path)
        return path

    def fill(self, cache, program="plain", **options):
        """Run a program on an empty directory; Unmet if nothing was stored."""
        run = self.run("fill", cache, program, **options)
        if not run.fine:
            raise Unmet(f"the first process failed: {run.error or 'a result is wrong'}")
        if not run.files_after:
            raise Unmet("the first process stored nothing")
        return run

    def run(self, label, cache, program="plain", **options):
        """Run a program in a process of its own, to its end; see `start` for the options."""
        return self.start(label, cache, program, **options).finish()

    def start(self, label, cache, program="plain", *, file=None, named=None, env=None, cwd=None,
              **order):  # fmt: skip
        """Start a process.

        Args:
            label: What it is for.
            cache: The cache directory, and the one whose files are counted.
            program: A function of `file`, or of plain.py and programs.py.
            file: The program's file, if it is none of the probe's.
            named: The directory as JAX is told it, if not `cache` itself.
            env: Settings on top of the usual ones; None takes one away.
            cwd: The working directory.
            **order: `names` of functions, modules to `hide`, a `fault`; see child.py.
        """
        file = file or HERE / ("plain.py" if program == "plain" else "programs.py")
        order |= {"file": str(file), "program": program}
        settings = environment(named or cache, TF_CPP_MIN_LOG_LEVEL="3", **(env or {}))
        # A module that is to be missing must not have been imported before.
        start = subprocess.Popen if "hide" in order else forks.Python
        process = start(
            # -P: the folder of the script must not become a place to import from.
            [self.python, "-P", str(HERE / "child.py"), json.dumps(order)],
            env={name: text for name, text in settings.items() if text is not None},
            cwd=cwd or self.scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        return Started(self, label, cache, process, len(entries(cache)))

    def scrub(self, text):
        """A message without this machine's paths."""
        text = text.replace(str(self.scratch), "DIR")
        return re.sub(r"(?<![\w/.])(/[\w.+-]+){2,}/(?=[\w.+-]+)", ".../", text)


def _mount(*arguments):
    program = shutil.which("mount")
    if program is None:
        raise NotApplicable("there is no mount command here")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotApplicable(f"mounting is not allowed here: {done.stderr.strip()}")


def _unmount(directory):
    # Lazily: a directory that is still in use must not stay mounted either.
    subprocess.run(["umount", "-l", str(directory)], capture_output=True, check=False)


def _refuses(directory):
    trial = directory / "trial"
    try:
        trial.touch()
    except OSError:
        return True
    trial.unlink()
    return False


@contextmanager
def read_only(directory):
    """Make a directory refuse writes.

    Permissions do it for a user; root, whom they do not bind, gets a read-only bind mount.
    """
    if os.geteuid() != 0:
        mode = directory.stat().st_mode
        directory.chmod(0o555)
        try:
            if not _refuses(directory):
                raise NotApplicable("this file system does not heed permissions")
            yield
        finally:
            directory.chmod(mode)
        return
    _mount("--bind", str(directory), str(directory))
    try:
        _mount("-o", "remount,ro,bind", str(directory))
        if not _refuses(directory):
            raise NotApplicable("root ignores permissions, and a read-only mount does not hold")
        yield
    finally:
        _unmount(directory)


@contextmanager
def small_disk(directory):
    """Put a file system of 256 KiB on a directory."""
    if os.geteuid() != 0:
        raise NotApplicable("filling a disk needs a small one, and only root may mount it")
    _mount("-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(directory))
    try:
        yield
    finally:
        _unmount(directory)
