"""The probe: real rows in real processes, and each guard broken on purpose once."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from harness.cache import probe as probing
from harness.cache.probe import damage, identity, limits, mounts, sharing, tables
from harness.cache.probe.findings import NotApplicable
from harness.cache.probe.judging import Row
from harness.cache.probe.rows import examine
from harness.cache.probe.runner import Bench, entries, identify
from harness.errors import UsageError

CHECKOUT = Path(__file__).parents[2]
SAVED = CHECKOUT / "docs" / "cache" / "probe-results"
RELEASES = ("0.10.2", "0.11.2", "0.12.0.1")


def row(name):
    return probing.choose([name])[0]


@pytest.fixture
def bench(tmp_path):
    return Bench(sys.executable, tmp_path)


def harness(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "harness", "cache", "probe", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        cwd=CHECKOUT,
        check=False,
    )


def test_the_command_prints_a_row_with_its_evidence_and_exits_with_0_when_all_is_as_expected():
    done = harness("--row", "same-program")
    assert done.returncode == 0, done.stderr
    assert "[1/1] pass same-program" in done.stderr
    assert re.search(r"same-program +hits +pass +hits +fill: 0/1 hits, 0→1 files", done.stdout)
    assert "again: 1/1 hits, 1→1 files" in done.stdout
    assert f"jax {jax.__version__}" in done.stdout
    assert "1 pass, 0 fail, 0 n/a." in done.stdout


def test_a_row_that_fails_makes_the_exit_code_5_and_is_written_without_a_path_of_the_machine(
    tmp_path,
):
    file = tmp_path / "new" / "report.json"
    done = harness("--row", "truncated", "--json", file)
    assert done.returncode == 5, done.stderr
    (report,) = probing.load(file)
    (finding,) = report.findings
    assert finding.verdict == "fail"
    assert [run.label for run in finding.runs] == ["fill", "damaged", "later"]
    assert all("Error reading" in run.warnings[0] for run in finding.runs[1:])
    assert all(run.hits == 0 and run.files_after == 1 for run in finding.runs)
    assert not re.search(r"/tmp|/home|/usr|harness-probe", file.read_text())
    again = harness("--read", file, "--markdown")
    assert again.returncode == 5
    assert (
        "| truncated entry (`truncated`) | runs; the run after it hits | **fail**" in again.stdout
    )


def test_a_hit_planted_where_none_may_be_fails_the_row(bench):
    class Planted(Bench):
        def filled(self):
            cache = super().filled()
            env = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
            self.run("planted", cache, env=env)
            return cache

    finding = examine(row("xla-flags"), Planted(sys.executable, bench.scratch))
    assert (finding.verdict, finding.happened) == ("fail", "hits unchanged; hits changed")


def test_a_cache_that_lost_its_entry_fails_the_row_that_expects_a_hit(bench):
    class Emptied(Bench):
        def filled(self):
            cache = super().filled()
            for path in entries(cache):
                path.unlink()
            return cache

    finding = examine(row("same-program"), Emptied(sys.executable, bench.scratch))
    assert (finding.verdict, finding.happened) == ("fail", "compiles")


def test_an_entry_that_somebody_repairs_passes_the_row_that_expects_healing(bench):
    class Healing(Bench):
        def run(self, label, cache, *arguments, **options):
            run = super().run(label, cache, *arguments, **options)
            if label == "damaged":
                shutil.copytree(self.scratch / "kept", cache, dirs_exist_ok=True)
            return run

    finding = examine(row("empty"), Healing(sys.executable, bench.scratch))
    assert finding.verdict == "pass"
    assert finding.happened == "compiles and warns; the run after it hits"


def test_a_process_is_really_killed_in_the_middle_of_its_write(bench):
    whole = bench.filled()
    finding = examine(row("killed-in-write"), bench)
    killed, following, _ = finding.runs
    assert killed.killed
    assert (killed.files_before, killed.files_after) == (0, 1)
    # Two compilations of one program differ by a few bytes.
    assert 0.4 < killed.bytes_after / entries(whole)[0].stat().st_size < 0.6
    assert following.fine
    assert finding.verdict == "fail"


def test_two_writers_meet_at_the_write_and_neither_gets_the_others_entry(bench):
    finding = examine(row("two-writers"), bench)
    assert finding.verdict == "pass", finding
    assert [(run.hits, run.files_before) for run in finding.runs] == [(0, 0), (0, 0), (1, 1)]


def test_a_program_that_breaks_or_computes_nonsense_fails_its_row_and_says_so(bench):
    text = "def calls():\n    raise ValueError('no such ' + __file__)\n"
    broken, wrong = bench.folder() / "broken.py", bench.folder() / "wrong.py"
    broken.write_text(text)
    right = (Path(probing.__file__).parent / "children" / "plain.py").read_text()
    wrong.write_text(right.replace("np.tanh(x) * 2 + x)", "np.tanh(x))"))

    def breaks(bench):
        bench.fill(bench.folder(), broken)

    def lies(bench):
        bench.fill(bench.folder(), wrong)

    finding = examine(Row("broken", "broken", "hits", breaks), bench)
    assert finding.verdict == "fail"
    assert re.fullmatch(
        r"the first process failed: ValueError: no such DIR/d\d+/broken.py", finding.happened
    )
    finding = examine(Row("wrong", "wrong", "hits", lies), bench)
    assert (finding.verdict, finding.happened) == (
        "fail",
        "the first process failed: a result is wrong",
    )


def test_a_directory_made_read_only_refuses_and_is_writable_again_afterwards(tmp_path):
    try:
        with mounts.read_only(tmp_path), pytest.raises(OSError, match=r"Read-only|Permission"):
            (tmp_path / "file").touch()
    except NotApplicable as reason:
        pytest.skip(str(reason))
    (tmp_path / "file").touch()
    if sys.platform == "linux":
        assert str(tmp_path) not in Path("/proc/mounts").read_text()


def test_where_a_directory_cannot_be_made_to_refuse_the_row_is_not_applicable(bench, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(mounts, "_refuses", lambda directory: False)
    finding = examine(row("read-only-empty"), bench)
    assert (finding.verdict, finding.happened) == (
        "n/a",
        "this file system does not heed permissions",
    )
    finding = examine(row("full-disk"), bench)
    assert finding.verdict == "n/a"
    assert re.search("only root may mount", finding.happened)


def test_an_interpreter_without_jax_or_none_at_all_is_refused_with_exit_code_6(tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    done = harness("--python", bare)
    assert done.returncode == 5
    assert re.search(
        r"cannot run JAX on the CPU: ModuleNotFoundError: .* with --python", done.stderr
    )
    with pytest.raises(probing.ProbeError, match=r"cannot be started.*with --python"):
        identify(str(tmp_path / "nothing"))
    with pytest.raises(probing.ProbeError, match="did not answer as an interpreter does"):
        identify("true")


def test_wrong_names_files_and_options_are_refused_with_the_remedy(tmp_path):
    with pytest.raises(UsageError, match=r"no row 'moved'. Expected one of: same-program, .*--row"):
        probing.choose(["moved"])
    garbage = tmp_path / "garbage.json"
    for text in ("", "{}", "[1]", '[{"schema": 1}]', '{"schema": 1}'):
        garbage.write_text(text)
        with pytest.raises(UsageError, match=r"garbage.json is not a report of the probe.*--json"):
            probing.load(garbage) or pytest.fail("an empty report")
    garbage.write_text('[{"schema": 99}]')
    with pytest.raises(UsageError, match=r"has layout \[99\], this version reads 1"):
        probing.load(garbage)
    with pytest.raises(UsageError, match=r"nothing.json cannot be read: No such file"):
        probing.load(tmp_path / "nothing.json")
    with pytest.raises(UsageError, match=r"cannot be written to .*: Is a directory.*--json"):
        probing.check_writable(tmp_path)
    assert harness("--read", garbage, "--row", "empty").returncode == 2


def test_row_names_are_unique_and_every_row_is_explained():
    names = [one.name for one in probing.ROWS]
    assert len(set(names)) == len(names)
    assert all(len(one.explanation) > 60 for one in probing.ROWS)
    assert (*identity.ROWS, *sharing.ROWS, *damage.ROWS, *limits.ROWS) == probing.ROWS


def test_the_documentation_is_what_the_committed_results_say():
    reports = [report for name in RELEASES for report in probing.load(SAVED / f"{name}.json")]
    assert tables.markdown(reports) == (CHECKOUT / "docs" / "cache" / "probe.md").read_text("utf-8")


@pytest.mark.slow
def test_all_rows_go_as_the_committed_results_of_this_release_say():
    file = SAVED / f"{jax.__version__}.json"
    if not file.exists():
        pytest.skip(f"nothing is committed for jax {jax.__version__}")
    (saved,) = probing.load(file)
    expected = {finding.row: finding.verdict for finding in saved.findings}
    found = probing.probe(sys.executable)
    differing = {
        finding.row: finding.happened
        for finding in found.findings
        if finding.verdict not in (expected[finding.row], "n/a")
    }
    assert not differing


def test_an_installation_that_stores_nothing_fails_every_row_that_needs_it(bench, monkeypatch):
    monkeypatch.setattr(
        bench, "run", lambda label, *rest, **more: probing.Run(label=label, correct=True)
    )
    for _ in range(2):
        finding = examine(row("same-program"), bench)
        assert (finding.verdict, finding.happened) == ("fail", "the first process stored nothing")


def test_an_experiment_that_cannot_be_set_up_does_not_stop_the_others(bench):
    def no_room(bench):
        raise OSError(28, "No space left on device", str(bench.scratch / "d1"))

    finding = examine(Row("none", "none", "hits", no_room), bench)
    assert finding.verdict == "n/a"
    assert "could not be set up: [Errno 28] No space left on device: 'DIR/d1'" in finding.happened


def test_looking_whether_a_report_can_be_written_leaves_no_file(tmp_path):
    probing.check_writable(tmp_path / "report.json")
    assert not (tmp_path / "report.json").exists()
