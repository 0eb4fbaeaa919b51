"""What every test starts from: no setting of the machine it runs on, and nothing left to chance."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter

import hypothesis
import pytest

from tests import forks

for name in [name for name in os.environ if name.startswith(("HARNESS_", "ASV_", "GIT_"))]:
    del os.environ[name]
os.environ.pop("CI", None)  # there `harness compare` measures what is missing

# What is tested here is the same on every backend, and the CPU is there on every machine.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Other tests measure on this machine.
os.environ["HARNESS_LOCKS"] = tempfile.mkdtemp(prefix="harness-locks-")
atexit.register(shutil.rmtree, os.environ["HARNESS_LOCKS"], ignore_errors=True)

# A shell's jobs in the background ignore SIGINT, and those under nohup SIGHUP; processes that tests
# start and send signals to would inherit that.
usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
for number, handler in usual.items():
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

# A shared machine may stop for longer than any deadline; a failure must come again when it is run
# again.
hypothesis.settings.register_profile("harness", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("harness")


FORKED = {
    "asv",
    "baselines",
    "cache",
    "cli",
    "docs",
    "frame",
    "init",
    "ir",
    "measure",
    "nightly",
    "output",
    "profiles",
    "program",
    "stages",
    "targets",
    "tools",
    "verdicts",
}
"""The folders whose processes are forked, see `forks`; the others' are started afresh."""


variables = dict(os.environ)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Import the tests without collecting garbage: what is made then stays, and there is much."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config, items):
    """Begin with the files of slow tests, where each file goes to one process; then the longest.

    Otherwise one process works through the last of them alone.
    """
    if config.getoption("dist", "no") == "loadfile":
        number = Counter(item.path for item in items)
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: (item.path not in slow, -number[item.path]))


def pytest_collection_finish():
    """Fail where importing the tests has set a variable, which every other test would then have."""
    differ = {name for name, _ in os.environ.items() ^ variables.items()}
    changed = {name for name in differ if not name.startswith(("TF_CPP_", "TPU_"))}  # JAX's own
    assert not changed, f"importing the tests has changed {', '.join(sorted(changed))}"


@pytest.fixture(scope="session")
def fork_server():
    with forks.server() as address:
        yield address


@pytest.fixture(scope="module", autouse=True)
def _variables():
    """What a library sets in a file's tests is gone after it.

    Dask's nanny leaves OMP_NUM_THREADS=1 behind: processes with that cannot be forked, and measure
    something else.
    """
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module", autouse=True)
def _processes(request, _variables):
    if request.path.relative_to(forks.ROOT / "tests").parts[0] not in FORKED:
        yield
        return
    with forks.forking(request.getfixturevalue("fork_server")):
        yield


@pytest.fixture
def fresh_processes(monkeypatch):
    """Every process is started as a user's would be, and none is forked."""
    monkeypatch.delenv(forks.ADDRESS, raising=False)


@pytest.fixture
def proof():
    """JAX's events, listened to for as long as the test takes, with the persistent cache off."""
    from harness.jaxhooks.evidence import Evidence
    from harness.stages.scenarios.cache_state import switched_off

    listening = Evidence()
    with switched_off():
        yield listening
    listening.close()


@pytest.fixture
def command(monkeypatch, capsys):
    """Run a command of the harness in this process; return its exit code, output and errors."""
    from harness import cli

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["harness", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        out = capsys.readouterr()
        return code, out.out, out.err

    return run
