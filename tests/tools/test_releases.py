"""What the page by release says holds here; and each guard is broken on purpose once."""

import ast
import copy
import os
import shutil
import subprocess
import sys

import jax
import pytest

from tools.probe import examine
from tools.probe.bench import Bench
from tools.probe.rows import ROWS, Row
from tools.releases import page
from tools.releases.experiments import EXPERIMENTS, SURPRISES, forked

ONE_OF_EACH_KIND = ("same-program", "moved-directory", "killed-in-write", "cap-without-filelock")
"""`python -m tools.releases` tries all, and prints what differs from what is committed."""

BROKEN = "def plain():\n    raise ValueError('no such ' + __file__)\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("probe")


def test_the_page_is_what_the_committed_results_say_and_below_12_kb():
    assert page.text(page.load()) == page.PAGE.read_text()
    assert len(page.PAGE.read_bytes()) < 12_000
    assert set(SURPRISES) <= set(EXPERIMENTS)


def test_what_differs_from_the_committed_results_or_the_release_before_is_named():
    committed = page.load()
    newest = list(committed)[-1]
    changed = copy.deepcopy(committed)
    assert not list(page.differences(newest, changed, committed))
    changed[newest]["results"]["scan_promoted"] = 1
    changed[newest]["cache"]["renamed"] = ["pass", "hits"]
    lines = list(page.differences(newest, changed, committed))
    assert [line.partition(",")[0] for line in lines] == [f"jax {newest}"] * 2
    changed["99.0"] = changed[newest]
    of_new = list(page.differences("99.0", changed, committed))
    assert of_new == [line.replace(newest, "99.0", 1) for line in lines]


@pytest.mark.filterwarnings("ignore:os.fork")  # the forks use no JAX
def test_an_experiment_that_raises_or_ends_its_process_has_that_for_its_result():
    assert forked(lambda: 1 / 0) == "ZeroDivisionError: division by zero"
    assert forked(lambda: os._exit(3)) == "the process ended"
    assert forked(lambda: [1, 2]) == [1, 2]


@pytest.mark.nightly
@pytest.mark.skipif(jax.__version__ not in page.load(), reason="no results of this release")
def test_an_experiment_of_each_area_goes_as_the_page_says_of_this_release():
    names = ("static_comparisons", "closed_over", "flops_sort", "export_donated", "pallas_tpu")
    expected = page.load()[jax.__version__]["results"]
    code = (
        "import sys; from tools.releases.experiments import EXPERIMENTS, forked\n"
        "print([forked(EXPERIMENTS[name][2]) for name in sys.argv[1:]])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *names], capture_output=True, text=True, check=True
    )
    assert ast.literal_eval(done.stdout) == [expected[name] for name in names]


@pytest.mark.nightly
@pytest.mark.skipif(jax.__version__ not in page.load(), reason="no results of this release")
def test_a_row_of_each_kind_goes_as_the_page_says_of_this_release(place):
    bench = Bench(sys.executable, place)
    found = {name: examine(ROWS[name], bench) for name in ONE_OF_EACH_KIND}
    expected = page.load()[jax.__version__]["cache"]
    assert {name: list(one) for name, one in found.items()} == {
        name: expected[name] for name in ONE_OF_EACH_KIND
    }


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
