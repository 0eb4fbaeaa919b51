"""Commands on a disk that is full, read-only, slow or failing: what they say, and what they lose.

    python -m tools.disk_faults [--rounds 60] [--seed N]

The project, its results and TMPDIR are on a file system in memory, which root alone may mount. Each
round leaves a random rest of space, makes it read-only at a random moment, or has strace delay or
fail system calls: synchronising, renaming and removing of any file, or reading and writing of what
is in `results/`. In that it runs one command: it must end with an exit code of the table that is no
defect's, say why in few lines without a traceback, and change no byte of a record that was there;
on a slow disk it must do its work. Then all is well again, and the same command must work.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import ExitCode
from tools.kills import Ledger
from tools.left_over import Place, ran

SIZE_MIB = 48
MOST_LINES = 12
PROGRAM = "import jax; jax.jit(lambda x: x + 1)(1.0)"
COMMANDS: dict[str, list[str]] = {
    "run": ["run", "--effort", "2x1", "--fresh"],
    "run with programs": ["run", "--effort", "1x1", "--fresh", "--keep-programs"],
    "show": ["show", "--format", "csv", "-o", "{new}.csv"],
    "compare": ["compare", "HEAD", "HEAD", "-o", "{new}.txt"],
    "export csv": ["export", "-o", "{new}.csv"],
    "export parquet": ["export", "-o", "{new}.parquet"],
    "export folder": ["export", "-o", "{new}"],
    "report": ["report", "-o", "{new}.html"],
    "ir": ["ir", "Scale", "-o", "{new}.txt"],
    "compile": ["compile", "Scale", "--trace", "{new}.json.gz"],
    "cache ledger": ["cache", "ledger", "-o", "{new}.jsonl", "--", "-c", PROGRAM],
    "profile": ["profile", "-o", "{new}", "--", "-c", PROGRAM],
    "init": ["init", "--force"],
}
KEPT = {"profile", "cache ledger"}
"""Commands that end with the program's own code, whatever becomes of what they write."""


@contextmanager
def disk(folder: Path) -> Iterator[Path]:
    """Mount a file system in memory, and yield its folder."""
    folder.mkdir()
    options = f"size={SIZE_MIB}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "harness", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def mounted(folder: Path, *options: str) -> None:
    """Mount it anew, with other options; a file that is being written can forbid `ro`."""
    subprocess.run(
        ["mount", "-o", ",".join(["remount", *options]), folder], stderr=subprocess.DEVNULL
    )


ANY_FILE = "fsync,rename,renameat,renameat2,unlink,ftruncate"
OF_RESULTS = "read,pread64,write,openat"
ERRORS = ("EIO", "ENOSPC", "EROFS", "ESTALE")


def strace(way: str, place: Place, rng: random.Random) -> list[str]:
    """Return what goes before a command so that its system calls are slow, or fail."""
    calls, paths = ANY_FILE, list[str]()
    if rng.random() < 0.6:
        there = [path for path in place.results.rglob("*") if path.is_file()]
        calls, paths = OF_RESULTS, [word for path in there for word in ("-P", str(path))]
    if way == "slow":
        what = f"delay_enter={rng.choice([20_000, 100_000, 400_000])}"
    else:
        first = rng.choice([1, 1, 2, 3, 5])
        what = f"error={rng.choice(ERRORS)}:when={first}{rng.choice(['', '+'])}"
    traced = ["-e", f"trace={calls}", "-e", f"inject={calls}:{what}"]
    return ["strace", "-f", "--seccomp-bpf", "-qqq", "-o", "/dev/null", *traced, *paths]


def disturbed(words: list[str], place: Place, way: str, rng: random.Random) -> tuple[int, str, str]:
    """Run a command on a bad disk; return what it ends with, what it says, and how bad it was."""
    if way == "full":
        filler = place.folder / "filler"
        left = rng.choice([0, 0, 1, 4, 16, 64, 256]) << 10
        free = os.statvfs(place.folder)
        with filler.open("wb") as file:
            file.write(bytes(max(0, free.f_bavail * free.f_frsize - left)))
        code, said = place.ended(words)
        filler.unlink()
        return code, said, f"{left >> 10} KiB left"
    if way in ("slow", "failing"):
        before = strace(way, place, rng)
        code, said = place.ended(words, before)
        return code, said, " ".join(before[before.index("-e") : before.index("-e") + 4])
    after_s = rng.choice([0.0, rng.uniform(0.2, 2.5)])
    later = threading.Timer(after_s, mounted, [place.folder, "ro"])
    later.start()
    code, said = place.ended(words)
    later.cancel()
    later.join()
    mounted(place.folder, "rw")
    return code, said, f"read-only after {after_s:.1f} s"


def problems(name: str, code: int, said: str) -> Iterator[str]:
    """Yield what is wrong with how a command has ended."""
    if "Traceback" in said:
        yield "traceback"
    if code not in set(ExitCode) - {ExitCode.DEFECT}:
        yield f"exit code {code}"
    lines = [line for line in said.splitlines() if not line.startswith("[")]
    if len(lines) > MOST_LINES:
        yield f"{len(lines)} lines"
    if code and name not in KEPT and "harness: " not in said:
        yield "does not say why"


def campaign(rounds: int, seed: int) -> Counter[str]:
    """Disturb until there were so many rounds; return what came of them, and say what is bad."""
    rng = random.Random(seed)
    ways = ["full", "read-only", *(["slow", "failing"] if shutil.which("strace") else [])]
    counts: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as above,
        disk(Path(above, "disk")) as folder,
        Place(folder) as place,
    ):
        ledger = Ledger(place.results)
        code, said = place.ended(["run", "--effort", "2x1"])
        assert code == 0, said
        ledger.look()
        for number in range(rounds):
            name = list(COMMANDS)[number % len(COMMANDS)]
            words = [word.format(new=f"new-{number}") for word in COMMANDS[name]]
            way = rng.choice(ways)
            code, said, how = disturbed(words, place, way, rng)
            wrong = [*problems(name, code, said)]
            if way == "slow" and code:
                wrong.append("a slow disk ends it")
            if lost := ledger.look():
                wrong.append(f"lost records: {lost}")
            again, then = place.ended([word.replace("new-", "again-") for word in words])
            if again:
                wrong.append(f"with space again: {again}: {then[-500:]}")
                place.tidy()
            ledger.look()
            counts["bad" if wrong else "refused" if code else "done"] += 1
            if wrong:
                print(f"#{number} {name}, {how}: {'; '.join(wrong)}\n{said[-1200:]}", flush=True)
            for one in place.project.glob("*-[0-9]*"):
                subprocess.run(["rm", "-rf", str(one)], check=True)
    return counts


if __name__ == "__main__":
    if os.geteuid():
        print("skipped: mounting a file system takes root")
    else:
        sys.exit(ran(__doc__, campaign, 60))
