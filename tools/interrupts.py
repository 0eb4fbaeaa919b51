"""Interrupt every command at random moments of its first second.

    python -m tools.interrupts --count 200

Each round starts one command in a project of its own and sends SIGINT, SIGTERM or SIGHUP at a
random moment of its first second. It must end within 2 s with 130, 143 or 129, say no traceback,
and leave no process, no folder in TMPDIR and no worktree. Until Python has started and the first
line of the command has run, a signal ends it as it ends any program: those are counted apart. What
had ended before the signal came is not counted.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tools.left_over import Place

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONGEST_S = 2.0

PROGRAM = "import jax, time; jax.jit(lambda x: x + 1)(1.0); time.sleep(60)"
COMMANDS: dict[str, list[str]] = {
    "list": ["list"],
    "targets": ["targets"],
    "run": ["run", "--effort", "100x1"],
    "show": ["show"],
    "compare": ["compare", "HEAD", "HEAD~1"],
    "compare live": ["compare", "--live", "HEAD", "HEAD~1"],
    "history": ["history"],
    "aa": ["aa", "--pairs", "4"],
    "baselines": ["baselines"],
    "ir": ["ir", "Scale"],
    "ir of a commit": ["ir", "Scale", "--diff", "commit:HEAD~1"],
    "compile": ["compile", "Scale"],
    "cache inspect": ["cache", "inspect", "cache"],
    "cache doctor": ["cache", "doctor", "cache"],
    "cache ledger": ["cache", "ledger", "-o", "l.jsonl", "--", "-c", PROGRAM],
    "profile": ["profile", "-o", "{new}", "--", "-c", PROGRAM],
    "report": ["report", "-o", "{new}"],
    "export": ["export", "-o", "{new}.parquet"],
    "nightly": ["nightly", "--night", "{new}"],
    "init": ["init", "{new}"],
}


def catches(pid: int, number: int) -> bool:
    """Tell whether a process has a handler for a signal."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def disturb(place: Place, name: str, rng: random.Random, number: int) -> tuple[str, str]:
    """Interrupt a command; return what came of it, and what it said."""
    words = [word.format(new=f"new-{number}") for word in COMMANDS[name]]
    sent, delay_s = rng.choice(SIGNALS), rng.uniform(0.03, 1.0)
    with (place.folder / "said").open("w+") as said:
        running = place.start("-m", "harness", *words, output=said)
        time.sleep(delay_s)
        if running.poll() is not None:
            return "ended before", ""
        begun = catches(running.pid, signal.SIGTERM)
        at = time.monotonic()
        running.send_signal(sent)
        try:
            code = running.wait(30)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
            code = None
        took_s = time.monotonic() - at
        said.seek(0)
        text = said.read()
    if not begun:  # -N, or a traceback of the interpreter
        return "before Python had begun", ""
    what = f"{name}, {sent.name} after {delay_s:.2f} s: "
    if code not in (128 + sent, 130):
        undisturbed = place.run("-m", "harness", *words, stderr=subprocess.STDOUT)
        if (code, text) == (undisturbed.returncode, undisturbed.stdout):
            return "ended before", ""  # it had said all that it says
        return "wrong exit code", f"{what}{code}\n{text[-800:]}"
    if "Traceback" in text:
        return "traceback", what + text[-1500:]
    if took_s > LONGEST_S:
        return "slow", f"{what}{took_s:.1f} s\n{text[-800:]}"
    return "interrupted", ""


BAD = ("wrong exit code", "traceback", "slow", "left over")


def campaign(count: int, seed: int, only: str = "") -> Counter[str]:
    """Interrupt until `count` commands have been; return what came of all, and say what is bad."""
    rng = random.Random(seed)
    for sent in SIGNALS:  # a shell makes what it runs in the background ignore Ctrl-C
        if signal.getsignal(sent) == signal.SIG_IGN:
            signal.signal(sent, signal.SIG_DFL)
    names = [name for name in COMMANDS if only in name]
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, Place(Path(folder)) as place:
        number = 0
        while sum(counts[one] for one in (*BAD, "interrupted")) < count:
            name = names[number % len(names)]
            number += 1
            came, detail = disturb(place, name, rng, number)
            counts[came] += 1
            if left := place.left():
                counts["left over"] += 1
                detail += f"{name}: left over: {left}"
                place.tidy()
            if detail:
                print(f"#{number} {detail}", flush=True)
    return counts


def main() -> int:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="", help="commands whose name holds this")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    counts = campaign(given.count, given.seed, given.only)
    for what, count in counts.most_common():
        print(f"{count:6d} {what}")
    return int(any(counts[one] for one in BAD))


if __name__ == "__main__":
    sys.exit(main())
