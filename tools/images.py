"""Every picture of the pages, by a command: `python -m tools.images [PICTURE ...]`.

Figures are drawn from the committed results, or from a program that is run for the purpose;
screenshots are of Chromium in a window of fixed size. Without arguments all are made, in about
three minutes.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests import forks
from tests.docs import asv_scripts, session
from tests.docs.pages import ROOT, blocks
from tests.docs.transcript import PAGE
from tests.output.report.pages import emulate, start_browser, wait_until

WINDOW = (1200, 800)
"""Pixels; a screenshot is one window of it."""
PHONE, SHEET = (390, 800), (794, 1000)
"""Of a telephone, and of the upper part of A4 paper at 96 pixels an inch."""
PROGRAM = "docs/examples/slow_start.py"
MEASURED = "harness run"
GRAPHED = "asv run -E existing --set-commit-hash HEAD >/dev/null"


EXAMPLES = "docs/example-results"


def harness(*arguments: object, cwd: Path = ROOT) -> None:
    """Run `harness ARGUMENTS` with this Python; raise unless it ends with 0."""
    # `python` in a command of a page is this one.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    done = forks.harness(*arguments, cwd=cwd, environment=variables)
    if done.returncode:
        raise RuntimeError(f"harness {arguments[0]} ended with {done.returncode}: {done.stderr}")


@functools.cache
def _reported() -> Path:
    """Write the report of the committed results, once for all pictures; return its folder."""
    folder = Path(tempfile.mkdtemp(prefix="harness-images-"))
    atexit.register(shutil.rmtree, folder)
    harness("report", "-r", EXAMPLES, "-o", folder / "report.html", "--figures", folder)
    return folder


Maker = Callable[[Path, Path], object]
"""Makes the picture `file`; the second folder is for what it needs on the way."""


def of_the_report(figure: str) -> Maker:
    """Draw a figure of the report of the committed results."""
    return lambda file, scratch: shutil.copy(_reported() / f"{figure}.svg", file)


def of_a_command(*arguments: object) -> Maker:
    """Have a command of `harness` draw its figure."""
    return lambda file, scratch: harness(*arguments, "--figure", file)


def transformer(file: Path, scratch: Path) -> None:
    """Compile a training step for three devices, and draw where the time goes."""
    targets = (word for name in ("cpu", "gpu:h200", "tpu:v5e") for word in ("--target", name))
    where = ("--benchmarks", "docs/examples/transformer", "-r", scratch / "results")
    harness("run", *where, "--effort", "quick", *targets)
    harness("report", "-r", scratch / "results", "-o", scratch / "r.html", "--figures", scratch)
    shutil.copy(scratch / "stages.svg", file)


def verdicts(file: Path, scratch: Path) -> None:
    """Draw which slow-downs are found, from what `tools.performance.verdicts` has saved."""
    from tools.performance.verdicts import drawn_power

    drawn_power(ROOT / "docs/verdicts.csv", file)


@contextmanager
def _browser(scratch: Path, window: tuple[int, int] = WINDOW) -> Iterator[Any]:
    browser = start_browser(scratch / "browser")
    try:
        size = {"width": window[0], "height": window[1], "deviceScaleFactor": 1}
        size |= {"mobile": window == PHONE}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        yield browser
    finally:
        browser.quit()


def _photographed(
    page: Path,
    file: Path,
    scratch: Path,
    top: str,
    view: str = "",
    window: tuple[int, int] = WINDOW,
    scheme: str = "light",
) -> None:
    """Take a picture of a view of a report, from the heading `top` downwards."""
    with _browser(scratch, window) as browser:
        emulate(browser, prefers_color_scheme=scheme)
        browser.get(page.as_uri() + view)
        wait_until(browser, "document.documentElement.dataset.complete")
        if window == SHEET:  # as a reader prints: what is on the screen
            emulate(browser, "print")
        browser.execute_script(
            "[...document.querySelectorAll('h1, h2')]"
            ".find(heading => heading.offsetParent && heading.textContent.includes(arguments[0]))"
            ".scrollIntoView({behavior: 'instant'})",
            top,
        )
        browser.save_screenshot(str(file))


def screenshot(top: str, **how: Any) -> Maker:
    """Show the report of the committed results, from a heading downwards."""
    return lambda file, scratch: _photographed(
        _reported() / "report.html", file, scratch, top, **how
    )


def profile(file: Path, scratch: Path) -> None:
    """Profile a small program, and show the causes in its report."""
    folder = scratch / "slow-start"
    harness("profile", "-o", folder, "--", "python", PROGRAM)
    harness("profile", "report", folder, "-o", scratch / "profile.html")
    _photographed(scratch / "profile.html", file, scratch, "Causes")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine, as asv's pages need it, and give its address."""
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=folder)
    ) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def asv(file: Path, scratch: Path) -> None:
    """Do what the first page says, with `asv run` after each commit, and show asv's graph."""
    todo = []
    for block in blocks(PAGE):
        if (block.runs or block.title) and block.mark("not executed") is None:
            for command in session.commands(block):
                todo += [command, "asv machine --yes >/dev/null", GRAPHED][
                    : 3 if command == MEASURED else 1
                ]
    package = session.fresh(scratch / "home")
    session.run(package, todo)
    html = package.folder / ".asv" / "html"
    asv_scripts.install(html)
    with _served(html) as address, _browser(scratch) as browser:
        browser.get(f"{address}/#predict.Predict.track_compile")
        wait_until(browser, "document.querySelector('#main-graph canvas')")
        browser.save_screenshot(str(file))


PICTURES: dict[str, Maker] = {
    "docs/stages.svg": of_the_report("stages"),
    "docs/transformer.svg": transformer,
    "docs/releases.svg": of_the_report("verdicts"),
    "docs/baselines.svg": of_a_command(
        "baselines", "-r", EXAMPLES, "-s", "Softmax|NBody|NaiveAttention"
    ),
    "docs/verdicts.svg": verdicts,
    "docs/images/report.png": screenshot("Benchmarks of"),
    "docs/images/report-case.png": screenshot(
        "What changed", view="?one_case=stencil.Heat+size%3D64%2C+form%3Droll&stage=compile"
    ),
    "docs/images/report-phone.png": screenshot("Where the time", window=PHONE, scheme="dark"),
    "docs/images/report-print.png": screenshot("Benchmarks of", window=SHEET),
    "docs/images/profile.png": profile,
    "docs/images/asv.png": asv,
}


def make(picture: str, to: Path = ROOT) -> Path:
    """Make a picture below the folder `to`, and return its file."""
    file = to / picture
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="harness-images-") as scratch:
        PICTURES[picture](file.resolve(), Path(scratch))
    return file


def main(pictures: list[str]) -> None:
    """Make the pictures that are named, or all; with the size of each."""
    for picture in pictures or PICTURES:
        if picture not in PICTURES:
            sys.exit(f"No such picture: {picture}. There are {', '.join(PICTURES)}.")
        print(f"{picture}: {make(picture).stat().st_size / 1e3:.0f} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
