"""Sections that are one table each, as `harness profile show` has it."""

from harness.report.content import Content, Section
from harness.report.profile.shown import Shown
from harness.report.profile.tables import MOST, table


def _section(name: str, title: str, intro: str, caption: str, empty: str) -> Section[Shown]:
    def content(shown: Shown) -> Content:
        frame = shown.frame(name)
        if frame.empty:
            return Content(notes=(empty,))
        notes: tuple[str, ...] = ()
        if len(frame) > MOST:
            notes = (
                f"The first {MOST} of {len(frame)} rows; `harness profile show FOLDER --table "
                f"{name} --format csv` has all of them.",
            )
        made = table(name, caption, frame, ("function", "call_site", "process", "thread"))
        return Content(tables=(made,), shown=(name,), notes=notes)

    return Section(name=name, title=title, intro=intro, content=content)


FUNCTIONS = _section(
    "functions",
    "Functions",
    "Functions that were jitted, by their place in the source.",
    "Functions, the most expensive first",
    "No function was built.",
)
CACHE = _section(
    "cache",
    "Persistent cache",
    "What JAX’s persistent compilation cache did for this program.",
    "Requests to the persistent cache",
    "The persistent cache was never asked.",
)
EAGER = _section(
    "eager",
    "Eager operations",
    "Programs of one operation, which JAX builds for each operation outside a jitted function, and "
    "for each shape and dtype anew.",
    "Eager operations, the most expensive first",
    "No operation outside a jitted function was built.",
)
THREADS = _section(
    "threads",
    "Threads",
    "Who built: each thread of each process.",
    "Threads",
    "No thread built anything.",
)
