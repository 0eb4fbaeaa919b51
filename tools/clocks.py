"""Commands while the clock jumps: between them, and while they run.

    python -m tools.clocks [--rounds 60] [--seed N]

Each round sets the clock of one command, and of all that it starts, to another date, and lets it
jump at random moments: to 1970, to 2100, by days, and by seconds. Python's module `time` tells that
date; files keep the true ones, so that they are from the future as often. The command must end as
it does by a true clock, and change no byte of a record that was there. A sweep must have as many
records as by a true clock, no sample of them negative, and the same sweep must find all of it done.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from harness.records.schema import Record
from tools.kills import Ledger
from tools.left_over import Place, ran

STEPS = "TESTS_CLOCK"
"""The variable with when the clock jumps, by the monotonic one, and by how much it is then off."""

OTHER_CLOCK = f"""
import os, time

steps = [tuple(map(float, one.split(":"))) for one in os.environ[{STEPS!r}].split()]
real_time, monotonic = time.time, time.monotonic

def off():
    return [by for at, by in steps if at <= monotonic()][-1]

def of_now(function):
    return lambda *given: function(*(given or [time.time()]))

time.time = lambda: max(0.0, real_time() + off())
time.time_ns = lambda: int(time.time() * 1e9)
time.gmtime, time.localtime = of_now(time.gmtime), of_now(time.localtime)
formatted = time.strftime
time.strftime = lambda text, moment=None: formatted(text, moment or time.localtime())
"""
"""A `sitecustomize` of Python's."""

DAY_S = 86_400.0
TO_1970, TO_2100 = -1e10, 74 * 365 * DAY_S
OFF_S = (0.0, -3.0, 3.0, -3_600.0, 3_600.0, -DAY_S, 2 * DAY_S, -400 * DAY_S, TO_1970, TO_2100)

SWEEP = ("run", "--effort", "3x1")
COMMANDS: dict[str, tuple[str, ...]] = {
    "run anew": (*SWEEP, "--fresh"),
    "run": SWEEP,
    "show": ("show", "--format", "csv"),
    "compare": ("compare", "HEAD", "HEAD"),
    "compare live": ("compare", "--live", "HEAD", "HEAD~1", "--effort", "3x1"),
    "history": ("history",),
    "report": ("report", "-o", "{new}.html"),
    "export": ("export", "-o", "{new}.parquet"),
    "night": ("nightly", "--effort", "2x1"),
}
ANEW = "run anew"


def clock(rng: random.Random) -> str:
    """Return when a clock jumps, and by how much it is off then."""
    began, steps = time.monotonic(), [(0.0, rng.choice(OFF_S))]
    for _ in range(rng.choice([0, 1, 3])):
        steps.append((began + rng.uniform(0.0, 4.0), rng.choice(OFF_S)))
    return " ".join(f"{at}:{off}" for at, off in sorted(steps))


def wrong_numbers(records: list[Record]) -> Iterator[str]:
    """Yield what is not as it is by a true clock."""
    for record in records:
        if record.status not in ("ok", "skipped"):
            yield f"{record.workload} is {record.status}: {record.reason}"
        for name, stage in record.stages.items():
            if any(not 0 <= sample < 60e9 for sample in stage.samples_ns):
                yield f"{record.workload} {name}: {stage.samples_ns}"


def campaign(rounds: int, seed: int) -> Counter[str]:
    """Let clocks jump in so many commands; return what came of it, and say what is bad."""
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, Place(Path(folder)) as place:
        other = Path(folder, "clock")
        other.mkdir()
        (other / "sitecustomize.py").write_text(OTHER_CLOCK)
        path = os.pathsep.join([str(other), place.environment.get("PYTHONPATH", "")])
        expected = {name: -1 for name in COMMANDS}
        ledger, sweep = Ledger(place.results), 0
        for number in range(-len(COMMANDS), rounds):
            name = list(COMMANDS)[number % len(COMMANDS)]
            words = tuple(word.format(new=f"new-{number}") for word in COMMANDS[name])
            before, jumps = len(place.records()), clock(rng)
            given = {"PYTHONPATH": path, STEPS: jumps} if number >= 0 else {}
            code, said = place.ended(words, **given)
            new = place.records()[before:]
            if number < 0:  # by a true clock, once each
                expected[name] = code
                sweep = len(new) if name == ANEW else sweep
                continue
            wrong = list(wrong_numbers(new))
            if code not in (expected[name], 0, 1):  # there is more to show, or it is slower
                wrong.append(f"ended with {code}, and by a true clock with {expected[name]}")
            if "Traceback" in said:
                wrong.append("traceback")
            if lost := ledger.look():
                wrong.append(f"lost records: {lost}")
            if name == ANEW and len(new) != sweep:
                wrong.append(f"{len(new)} records, and by a true clock {sweep}")
            if name == "run" and new:
                wrong.append(f"{len(new)} records were measured again")
            if left := place.left():
                wrong.append(f"left over: {left}")
                place.tidy()
            counts["bad" if wrong else "good"] += 1
            if wrong:
                print(f"#{number} {name}, {jumps}: {'; '.join(wrong)}\n{said[-1200:]}", flush=True)
    return counts


if __name__ == "__main__":
    sys.exit(ran(__doc__, campaign, 60))
