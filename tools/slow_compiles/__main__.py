"""Whether `harness compile` names what public reports of slow compiles are of.

    python -m tools.slow_compiles [NAME ...]

Prints a line a program: what it takes to compile, the slowest pass, the cause or the group of
passes that comes first, and whether that was expected; see programs.py. Without a cause a compile
below :data:`FAST_S` is `fast`: releases differ in what is slow.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

from harness.program.compiler.tree import REST
from tools.performance.command import HARNESS, took
from tools.slow_compiles import programs

FAST_S = 1.0

HERE = Path(__file__).parent


def passes(branch):
    """Yield every pass of a tree."""
    yield branch
    for one in branch["inside"]:
        yield from passes(one)


def main(chosen):
    """Exit with how many programs were misjudged."""
    wrong = 0
    every = [one for one in vars(programs).values() if getattr(one, "about", "")]
    for one in every:
        if chosen and one.__name__ not in chosen:
            continue
        command = [*HARNESS, "compile", f"^programs.{one.__name__}$", "--benchmarks", HERE]
        made = json.loads(took([*command, "--no-try", "--format", "json"]).out)
        groups = [group for group in made["groups"] if group["name"] != REST]
        group = max(groups, key=lambda each: each["wall_s"])
        slowest = max(passes(made["tree"]), key=lambda each: each["own_wall_s"])
        causes = [cause["kind"] for cause in made["causes"]]
        first = (causes or [group["name"]])[0]
        is_right = first in one.expected
        is_fast = not causes and made["wall_s"] < FAST_S
        wrong += not is_right and not is_fast
        judged = "right" if is_right else "fast " if is_fast else "WRONG"
        print(
            f"{judged} {one.about:20} {one.__name__:18} "
            f"{made['wall_s']:7.2f} s, {slowest['own_wall_s'] / made['wall_s']:.0%} "
            f"{slowest['name']}; {', '.join(causes) or 'no cause'}; "
            f"{group['wall_s'] / made['wall_s']:.0%} {group['name']} {group['part']}",
            flush=True,
        )
    print(f"jax {version('jax')}: {wrong} misjudged")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
