"""Run all small programs, and print what is found otherwise than expected, and the score.

The causes of each, with their values and remedies, are compared with causes.txt, or with `--write`
written to it.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from pathlib import Path

import jax

import harness
from tools.profile_causes import programs

CAUSES = Path(__file__).with_name("causes.txt")


def main():
    """Exit with 1 where a program was misjudged, or a cause is another."""
    jax.config.update("jax_platforms", os.environ.get("JAX_PLATFORMS", "cpu"))
    jax.config.update("jax_num_cpu_devices", 2)
    jax.jit(lambda: 0)()  # what a process pays for its first program is in no profile
    right = builds = 0
    text = ""
    for small in programs.ALL:
        found, others, causes = result(small)
        right += (as_expected := small.builds == (*found, *others))
        builds += len(found)
        text += "".join(f"{line}\n" for line in (small.name, *(f"  {one}" for one in causes)))
        if not as_expected:
            print(f"WRONG {small.name}: expected {small.builds}, found {found}, {others}")
    print(f"jax {jax.__version__}: {right} of {len(programs.ALL)} programs right, {builds} builds")
    # Without what another release or edit moves.
    text = re.sub(r"<[a-z_.]+\.([AB])>", r"<\1>", re.sub(r"\.py:\d+", ".py:LINE", text))
    if "--write" in sys.argv:
        CAUSES.write_text(text, encoding="utf-8")
    before = CAUSES.read_text(encoding="utf-8").splitlines()
    differ = [*difflib.unified_diff(before, text.splitlines(), "before", "now", lineterm="", n=1)]
    print(*differ, *["If this is meant: --write"] * bool(differ), sep="\n")
    sys.exit(right < len(programs.ALL) or bool(differ))


def as_data(cause):
    """Return a cause in a line: its kind, form, argument, values, and the code of its remedy."""
    numbered = cause.kind == "new function object"  # in the order in which JAX makes objects
    before, after = ("", "") if numbered else cause.values
    parts = [cause.kind, f"({cause.form})" if cause.form else "", cause.argument]
    parts += [f"{before} → {after}"] if before or after else []
    parts += [f"+{cause.alike.number} alike"] if cause.alike.number else []
    parts += [f"+{cause.also.number} also"] if cause.also.number else []
    parts += [f"[{cause.remedy.id} {cause.remedy.kind}]"] if cause.remedy else []
    return " ".join(filter(None, parts))


def result(small):
    """Run one program; return what was built, what should not have been, and all causes as data.

    The second are unexplained builds of JAX's own, and failures of the profile.
    """
    jax.clear_caches()
    with harness.profile() as profile:
        small.run()
    found, causes = [], []
    others = [line for process in profile.processes for line in process.ended.failures]
    for built in profile.builds:
        cause = profile.cause_of(built)
        text = f"{built.function.name}: {cause.kind} {cause.argument}".strip()
        if built.function.origin != "jax" or small.operations:
            found.append(text)
            causes.append(as_data(cause))
            for loop in built.line.promoted:
                causes.append(f"{loop.loop} body again {loop.before} → {loop.after}")
        elif cause.kind == "unexplained":
            others.append(text)
    return found, others, causes


if __name__ == "__main__":
    main()
