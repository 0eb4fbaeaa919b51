"""`harness profile -- PROGRAM`: run a program and profile it."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Argument, Option
from harness.errors import UsageError
from harness.jaxhooks import programs

ANNOUNCE_S = 5.0
LOOK_EVERY_S = 0.25
DOING = {"trace": "tracing", "lower": "lowering", "compile": "compiling"}


@options.command(
    common="output max_compiles max_seconds report inside mute",
    context_settings={"allow_interspersed_args": False},
    words=Argument(
        metavar="PROGRAM [ARG]...", help="A command, a .py file, -m MODULE or -c CODE, after --."
    ),
    output=Option(
        "--output",
        "-o",
        metavar="FOLDER",
        help="The new folder for the profile. Default: profile-YYYYMMDD-HHMMSS here.",
    ),
    max_compiles=Option(
        min=0,
        metavar="N",
        help="Exit with 1 if more is compiled or loaded from a cache. JAX's own functions outside "
        "jit count, too.",
    ),
    max_seconds=Option(
        min=0,
        metavar="S",
        help="Exit with 1 if building takes longer. Wall time of trace, lower, compile, load and "
        "write; parallel builds count once.",
    ),
    announce=Option(
        min=0,
        metavar="SECONDS",
        help="Print a line when tracing, lowering or compiling a function takes longer than this, "
        f"or one is built more than 50 times; 0 for never.  [default: {ANNOUNCE_S:g}]",
    ),
    report=Option(
        metavar="FILE",
        help="Also write a .html, .json, .json.gz or .pb.gz file.",
    ),
    mute=Option(metavar="ID", help="Only count findings with this remedy, such as JH050; repeat."),
    inside=Option(
        help="Also show XLA's passes in the longest compiles. A compile takes about 15 ms more for "
        "it, half a second where libtpu is installed."
    ),
    sample=Option(min=0, metavar="MS", help="Sample the threads every so many ms; 0 for never."),
)
def run(
    words: list[str],
    output: Path | None = None,
    max_compiles: int | None = None,
    max_seconds: float | None = None,
    announce: float | None = None,
    report: Path | None = None,
    mute: list[str] | None = None,
    inside: bool = False,
    sample: float = 25.0,
) -> None:
    r"""Run a program: where did its time go? The same as `harness profile -- PROGRAM`."""
    # What is wrong with an option is said before the program runs, which may take hours.
    command = programs.command_of(words, programs.PROFILE_EXAMPLE)
    if announce and not sample:
        raise UsageError(
            f"--announce {announce:g} needs samples, and --sample 0 takes none: leave one out."
        )
    if report is not None:
        _answer().check(report)
    announce_s = (ANNOUNCE_S if announce is None else announce) if sample else 0.0
    if mute:
        _answer().muted(mute)
    folder = programs.new_folder(output)
    with _Announcing(folder, announce_s):
        threading.Thread(target=_answer, daemon=True).start()
        ran = programs.run_profiled(command, folder, sample, inside, announce_s)
    raise Exit(_answer().tell(ran, max_compiles, max_seconds, report, mute))


def _answer() -> Any:
    """Return what says what was recorded; loaded while the program runs, it delays nothing."""
    from harness.cli.profile import answer  # NumPy, and all causes

    return answer


class _Announcing:
    """Prints a line for each build that takes long, while the program runs.

    The line comes from this process: a program that sends its own standard error elsewhere, as
    pytest does, does not get it.
    """

    def __init__(self, folder: Path, announce_s: float) -> None:
        self._folder, self._announce_s = folder, announce_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="harness-announce", daemon=True)

    def __enter__(self) -> None:
        if self._announce_s:
            self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._announce_s:
            self._thread.join(timeout=1)

    def _run(self) -> None:
        from harness.profiles.slow import MANY, Slow, SlowBuilds  # msgspec
        from harness.records.printable import printable
        from harness.records.units import seconds_text

        slow = SlowBuilds(self._folder, self._announce_s)
        every_s = min(LOOK_EVERY_S, max(LOOK_EVERY_S / 10, self._announce_s / 2))
        try:
            while not self._over.wait(every_s):
                for one in slow.look():
                    place = f" ({printable(one.place, '')})" if one.place else ""
                    name = f"`{printable(one.function, '')}`{place}"
                    if isinstance(one, Slow):
                        so_far = seconds_text(one.seconds)
                        line = f"{DOING[one.stage]} {name}, {so_far} so far"
                    else:
                        line = f"{name} was built more than {MANY} times; the answer will say why"
                    sys.stderr.write(f"harness: {line}\n")
                    sys.stderr.flush()
        except (OSError, ValueError):  # nobody reads it any more: the program goes on
            return
