"""What docs/cache/probe.md says holds on this release; and each guard is broken on purpose once."""

import shutil
import sys

import jax
import pytest

from tools.probe import page
from tools.probe.__main__ import examine
from tools.probe.bench import Bench
from tools.probe.rows import ROWS, Row

ONE_OF_EACH_KIND = ("same-program", "moved-directory", "killed-in-write", "cap-without-filelock")
"""`python -m tools.probe` tries all, and fails where one differs from what is committed."""

BROKEN = "def plain():\n    raise ValueError('no such ' + __file__)\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("probe")


def test_the_page_is_what_the_committed_results_say():
    assert page.page(page.load(page.DOCS / "probe-results")) == (page.DOCS / "probe.md").read_text()


@pytest.mark.nightly
@pytest.mark.skipif(jax.__version__ not in page.committed(), reason="no results of this release")
def test_a_row_of_each_kind_goes_as_the_page_says_of_this_release(place):
    bench = Bench(sys.executable, place)
    found = {name: examine(ROWS[name], bench) for name in ONE_OF_EACH_KIND}
    expected = page.committed()[jax.__version__]
    assert {name: one.verdict for name, one in found.items()} == {
        name: expected[name] for name in ONE_OF_EACH_KIND
    }, found


def test_a_hit_planted_where_none_may_be_fails_the_row(tmp_path):
    class Planted(Bench):
        def filled(self):
            cache = super().filled()
            self.run("planted", cache, env={"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"})
            return cache

    finding = examine(ROWS["xla-flags"], Planted(sys.executable, tmp_path))
    assert (finding.verdict, finding.happened) == ("fail", "hits unchanged; hits changed")


def test_an_entry_that_somebody_repairs_passes_the_row_that_expects_healing(tmp_path):
    class Healing(Bench):
        def run(self, label, cache, *arguments, **options):
            run = super().run(label, cache, *arguments, **options)
            if label == "damaged":
                shutil.copytree(self.scratch / "kept", cache, dirs_exist_ok=True)
            return run

    finding = examine(ROWS["empty"], Healing(sys.executable, tmp_path))
    assert finding.verdict == "pass"
    assert finding.happened == "compiles and warns; the run after it hits"


def test_a_program_that_breaks_fails_its_row_and_what_cannot_be_set_up_stops_no_other(tmp_path):
    def no_room(bench):
        raise OSError(28, "No space left on device", str(bench.scratch / "d1"))

    bench, file = Bench(sys.executable, tmp_path), tmp_path / "broken.py"
    file.write_text(BROKEN)
    for experiment, verdict, happened in (
        (lambda bench: bench.fill(bench.folder(), file=file), "fail",
         "the first process failed: ValueError: no such DIR/broken.py"),
        (no_room, "n/a", "the experiment could not be set up: [Errno 28] No space left on device: "
         "'DIR/d1'"),
    ):  # fmt: skip
        finding = examine(Row("own", "own", "hits", experiment), bench)
        assert (finding.verdict, finding.happened) == (verdict, happened)
