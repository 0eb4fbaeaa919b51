"""Damage every file that is read back, and see what its readers and commands make of it.

    python -m tools.damaged --count 20000 --seed 1
    python -m tools.damaged --flips 10000 --seed 1

A case is a healthy file of one format, damaged in one way: by chance (bits, holes, ends, encodings,
other files), on purpose with a valid checksum (huge numbers, deep nesting, other types, control
characters, paths), or blown up (gigabytes of zeros, compressed or not). Its reader may refuse it
with an error for users; what it returns must be what was written. In every twentieth case a command
reads it too: it may end with any exit code of the table but 70, and prints no control characters.
Neither may hold more than 500 MiB. `--flips` damages one bit a case, in formats of our own alone;
what is then missing must be told as well.

`--only N` repeats one case of a campaign by its number.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness.errors import ExitCode, HarnessError
from tests.damaged import ways
from tests.damaged.formats import FORMATS

MOST_MIB = 500
LONGEST_S = 60
"""Of a processor: other programs may run on this machine."""
EVERY = 20
"""In one of so many cases a command reads the file."""

BY_CHANCE, ON_PURPOSE, BLOWN_UP = "by chance", "on purpose", "blown up"


class Slow(Exception):
    """A reader took longer than it may."""


class Case:
    """One damaged file, by its number in a campaign."""

    def __init__(self, number: int, seed: int, flips: bool) -> None:
        self.number, self.flips = number, flips
        self.rng = random.Random(f"{seed}#{number}")
        known = [one for one in FORMATS if one.checked] if flips else FORMATS
        self.format = known[number % len(known)]
        chosen = self.rng.random()
        on_purpose = ON_PURPOSE if self.format.json and chosen < 0.5 else BY_CHANCE
        self.kind = BY_CHANCE if flips else BLOWN_UP if chosen > 0.99 else on_purpose

    def damage(self, path: Path, healthy: bytes) -> str:
        """Write the damaged file; return in which way."""
        if self.kind == BLOWN_UP:
            return ways.blow_up(path, healthy, self.rng)
        if self.kind == ON_PURPOSE:
            path.write_bytes(self._twisted(healthy))
            return "twisted"
        way = "flipped" if self.flips else self.rng.choice(list(ways.BY_CHANCE))
        path.write_bytes(ways.BY_CHANCE[way](healthy, self.rng))
        return way

    def _twisted(self, healthy: bytes) -> bytes:
        def one(text: bytes) -> bytes:
            document = json.loads(text)
            if isinstance(document, dict):
                document.pop("crc32", None)
            made = ways.text_of(ways.twisted(document, self.rng), self.rng)
            return ways.sealed(made) if self.rng.random() < 0.9 else made

        if not self.format.lines:
            return one(healthy) + b"\n"
        lines = healthy.splitlines()
        for place in self.rng.sample(range(len(lines)), self.rng.randint(1, len(lines))):
            lines[place] = one(lines[place])
        return b"\n".join(lines) + b"\n"


class Bench:
    """Healthy files of every format, and what they say."""

    def __init__(self, folder: Path) -> None:
        self.files: dict[str, tuple[Path, bytes, dict[Any, Any]]] = {}
        for one in FORMATS:
            own = folder / one.name.replace(" ", "-").replace("'", "") / "tree"
            own.mkdir(parents=True)
            path = one.make(own)
            values = one.read(path)
            assert values or not one.checked, f"{one.name}: nothing is read of a healthy file"
            self.files[one.name] = path, path.read_bytes(), values

    def judge(self, case: Case) -> tuple[str, str, str]:
        """Return how a case was damaged, what came of it, and the details of what must not be."""
        path, healthy, values = self.files[case.format.name]
        way = case.damage(path, healthy)
        try:
            return way, *self._judged(case, path, values)
        finally:
            path.write_bytes(healthy)

    def _judged(self, case: Case, path: Path, values: dict[Any, Any]) -> tuple[str, str]:
        _reset_peak()
        came, detail, told = "read", "", False
        try:
            with limited(), warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                found = case.format.read(path)
            told = bool(said)
        except HarnessError as error:
            came, found, told = "refused", {}, bool(str(error))
        except BaseException:  # whatever it is, it is what is looked for
            return "traceback", traceback.format_exc(limit=-6)
        if case.kind == BY_CHANCE and case.format.checked:
            wrong = {name: one for name, one in found.items() if values.get(name) != one}
            if wrong:
                return "wrong", repr(wrong)[:1000]
            if case.flips and len(found) < len(values):
                came = "told" if told else "untold"
        if case.number // len(FORMATS) % EVERY == 0 and not case.flips:
            words = case.format.command(path, case.rng)
            if words and (detail := in_its_own(words)):
                return "command", detail
        if (peak := _peak_mib()) > MOST_MIB:
            return "memory", f"{peak} MiB"
        return came, detail


@contextlib.contextmanager
def limited():
    """End what takes too long."""

    def end(number, frame):
        raise Slow(f"longer than {LONGEST_S} s")

    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def in_its_own(words: list[str]) -> str:
    """Run a command in a process of its own, as users do; return what is wrong with how it went."""

    def child(answers: Any) -> None:
        _reset_peak()
        wrong = run(words)
        peak = _peak_mib()
        answers.send(wrong or (f"harness {words[0]}: {peak} MiB" if peak > MOST_MIB else ""))

    # What it imports stays with it.
    said, exitcode = answered(multiprocessing.get_context("fork"), child)
    return said[0] if said else f"harness {' '.join(words)}: died, {exitcode}"


def answered(context: Any, target: Any, *arguments: Any) -> tuple[list[Any], int]:
    """Run `target` in a process; return what it has sent, and the exit code."""
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(there, *arguments))
    process.start()
    there.close()
    said = []
    with contextlib.suppress(EOFError):
        while True:
            said.append(here.recv())
    process.join()
    return said, process.exitcode


def run(words: list[str]) -> str:
    """Run a command in this process; return what is wrong with how it went."""
    from harness import cli

    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["harness", *words]
    code: Any = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), limited():
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code or 0
        except BaseException:  # whatever it is, it is what is looked for
            code = ExitCode.DEFECT
            traceback.print_exc()
    said = out.getvalue() + err.getvalue()
    shown = f"harness {' '.join(words)}: exit code {code}"
    if code not in set(ExitCode) - {ExitCode.DEFECT} or "Traceback" in said:
        return f"{shown}\n{said[-1500:]}"
    bad = {one for one in said if not one.isprintable() and one not in "\n\t"}
    if bad:
        place = min(said.index(one) for one in bad)
        return f"{shown}: prints {sorted(bad)}: {said[max(0, place - 200) : place + 50]!r}"
    return ""


def _reset_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mib() -> int:
    found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    kib = int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kib // 1024


MOST_CASES = 400
"""So many cases a process reads: what is left in it of thousands is no matter of the last."""


def work(answers: Any, numbers: range, seed: int, flips: bool) -> None:
    """Judge cases, one after the other, in a process with a limit."""
    resource.setrlimit(resource.RLIMIT_DATA, (4 * ways.GIB, 4 * ways.GIB))
    with tempfile.TemporaryDirectory(prefix="damaged-") as folder:
        os.chdir(folder)
        bench = Bench(Path(folder))
        answers.send("the healthy files can be read")
        for number in numbers:
            answers.send((*bench.judge(Case(number, seed, flips)), _peak_mib()))


def judged(numbers: range, seed: int, flips: bool) -> list[tuple[int, str, str, str, int]]:
    """Return of each case its number, how it was damaged, what came of it, details and MiB held."""
    context = multiprocessing.get_context("forkserver")  # what was imported here is not theirs
    context.set_forkserver_preload([__name__])
    found = []
    while numbers:
        (_, *said), exitcode = answered(context, work, numbers, seed, flips)
        if exitcode:
            said.append(("", "died", f"exit code {exitcode}", 0))
        found += [(number, *one) for number, one in zip(numbers, said, strict=False)]
        numbers = numbers[len(said) :]
    return found


BAD = ("traceback", "wrong", "untold", "command", "memory", "died")


def campaign(
    count: int, seed: int, flips: bool = False, workers: int = 2, say: Any = print
) -> dict[str, Counter[str]]:
    """Judge `count` cases; return what came of them by format. Says what must not be."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    parts = [range(begin, min(count, begin + MOST_CASES)) for begin in range(0, count, MOST_CASES)]
    with ThreadPoolExecutor(workers) as pool:
        for answers in pool.map(lambda part: judged(part, seed, flips), parts):
            for number, way, came, detail, peak in answers:
                case = Case(number, seed, flips)
                of_format = found[case.format.name]
                of_format.update(("files", came))
                of_format["MiB"] = max(of_format["MiB"], peak)
                if came in BAD:
                    said = f"#{number} {case.format.name}, {case.kind}, {way}: {came}\n{detail}"
                    say(said, flush=True)
    return found
