"""What docs/cache/probe.md says holds on this release; and each guard is broken on purpose once."""

import shutil
import sys
from pathlib import Path

import jax
import pytest

from tests.cache.probe import page
from tests.cache.probe.__main__ import examine
from tests.cache.probe.bench import Bench, Run, entries
from tests.cache.probe.rows import ROWS, Row

DOCS = Path(__file__).parents[2] / "docs" / "cache"
SAVED = {report.installation.jax: report for report in page.load(DOCS / "probe-results")}

QUICK = ("same-program", "moved-directory", "xla-flags", "killed-in-write", "cap-without-filelock")
"""A row of each kind; the others are for `-m slow`."""


@pytest.fixture
def bench(tmp_path):
    return Bench(sys.executable, tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return Bench(sys.executable, tmp_path_factory.mktemp("probe"))


def test_the_page_is_what_the_committed_results_say():
    assert page.page(page.load(DOCS / "probe-results")) == (DOCS / "probe.md").read_text("utf-8")


@pytest.mark.skipif(jax.__version__ not in SAVED, reason="nothing is committed for this release")
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in ROWS],
)
def test_a_row_goes_as_the_page_says_of_this_release(shared, name, request):
    if name == "custom-partitioning":  # a pointer is in its key, which forked processes have alike
        request.getfixturevalue("fresh_processes")
    (expected,) = (one for one in SAVED[jax.__version__].findings if one.row == name)
    finding = examine(ROWS[name], shared)
    if finding.verdict == "n/a":
        pytest.skip(finding.happened)
    assert finding.verdict == expected.verdict, finding


def test_a_hit_planted_where_none_may_be_fails_the_row(bench):
    class Planted(Bench):
        def filled(self):
            cache = super().filled()
            self.run("planted", cache, env={"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"})
            return cache

    finding = examine(ROWS["xla-flags"], Planted(sys.executable, bench.scratch))
    assert (finding.verdict, finding.happened) == ("fail", "hits unchanged; hits changed")


def test_a_cache_that_lost_its_entry_fails_the_row_that_expects_a_hit(bench):
    class Emptied(Bench):
        def filled(self):
            cache = super().filled()
            for path in entries(cache):
                path.unlink()
            return cache

    finding = examine(ROWS["same-program"], Emptied(sys.executable, bench.scratch))
    assert (finding.verdict, finding.happened) == ("fail", "compiles")


def test_an_entry_that_somebody_repairs_passes_the_row_that_expects_healing(bench):
    class Healing(Bench):
        def run(self, label, cache, *arguments, **options):
            run = super().run(label, cache, *arguments, **options)
            if label == "damaged":
                shutil.copytree(self.scratch / "kept", cache, dirs_exist_ok=True)
            return run

    finding = examine(ROWS["empty"], Healing(sys.executable, bench.scratch))
    assert finding.verdict == "pass"
    assert finding.happened == "compiles and warns; the run after it hits"


def test_a_program_that_breaks_or_computes_nonsense_fails_its_row_and_says_so(bench):
    broken, wrong = bench.folder() / "broken.py", bench.folder() / "wrong.py"
    broken.write_text("def plain():\n    raise ValueError('no such ' + __file__)\n")
    right = (Path(__file__).parent / "probe" / "plain.py").read_text()
    wrong.write_text(right.replace("np.tanh(x) * 2 + x)", "np.tanh(x))"))
    for file, told in (
        (broken, "the first process failed: ValueError: no such DIR/d1/broken.py"),
        (wrong, "the first process failed: a result is wrong"),
    ):
        row = Row(
            "own", "own", "hits", lambda bench, file=file: bench.fill(bench.folder(), file=file)
        )
        finding = examine(row, bench)
        assert (finding.verdict, finding.happened) == ("fail", told)


def test_an_installation_that_stores_nothing_fails_every_row_that_needs_it(bench, monkeypatch):
    monkeypatch.setattr(bench, "run", lambda label, *rest, **more: Run(label=label, correct=True))
    finding = examine(ROWS["same-program"], bench)
    assert (finding.verdict, finding.happened) == ("fail", "the first process stored nothing")


def test_an_experiment_that_cannot_be_set_up_does_not_stop_the_others(bench):
    def no_room(bench):
        raise OSError(28, "No space left on device", str(bench.scratch / "d1"))

    finding = examine(Row("none", "none", "hits", no_room), bench)
    assert finding.verdict == "n/a"
    assert "could not be set up: [Errno 28] No space left on device: 'DIR/d1'" in finding.happened
