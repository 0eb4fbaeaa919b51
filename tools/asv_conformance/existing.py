"""Verbs and options in the environment at hand, besides what `tests.asv` holds at every run."""

import base64
import json
import pstats
import re
import sys
import urllib.request
import zlib

import pytest

from harness.records.schema import Problems, read_file
from tests.asv.project import ENV, JAX, MACHINE, Project
from tools.asv_conformance.suite import MODULES, ONE, TRACE, chosen, previewed, samples

PROCESSES = 2
EFFORT = {"HARNESS_EFFORT": f"{PROCESSES}x1", "HARNESS_FIRST_CALLS": "0"}
QUICK = ("--quick", "-b", chosen(ONE))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("existing"), MODULES)


@pytest.fixture(scope="module")
def first(project):
    """What asv says of everything, once, with samples."""
    return project.run("--record-samples", "--durations", "all", code=2, **EFFORT)


@pytest.fixture
def measured(project, first):
    """Returns how many processes have measured since, those that later ones replaced too."""

    def processes():
        files = project.results.glob("*/records/*.jsonl")
        return {r.process for file in files for r in read_file(file, Problems())}

    before = processes()
    return lambda: len(processes() - before)


# What a run stores


@pytest.mark.parametrize(
    "name",
    [
        *("plain.Sums.time_sum", "plain.Sums.peakmem_sum", "plain.Sums.track_length"),
        *("plain.timeraw_pass", "plain.mem_list", "plain.track_three", "plain.time_rounds", TRACE),
    ],
)
def test_a_run_has_a_value_of_every_benchmark(project, first, name):
    assert all(value is not None and value > 0 for value in project.result(name)["result"])


def test_a_plain_benchmark_has_its_rounds(project, first):
    assert project.result("plain.time_rounds")["stats_repeat"] == [6]


def test_durations_are_told_of_every_benchmark_and_setup(first):
    shown = first[first.index("total duration") :]
    assert "<setup_cache work:" in shown
    assert TRACE in shown
    assert float(re.search(r"total +\W +([\d.]+)s", shown.replace("|", " "))[1]) > 1


def test_durations_n_shows_the_n_slowest(project):
    said = project.run("--quick", "--durations", "1", "-b", "plain.Sums")
    assert "..." in said[said.index("total duration") :]


# Choosing


def test_b_measures_one_cell_and_leaves_the_others_as_they_were(project, first):
    before = project.result(TRACE)["by_case"]
    project.run("-b", chosen(ONE), **EFFORT)
    after = project.result(TRACE)["by_case"]
    assert [before[case] == after[case] for case in before] == [False, True]


def test_just_discover_measures_nothing(project, measured):
    project.run("-b", "just-discover")
    assert measured() == 0


# Measuring again


def test_without_record_samples_only_statistics_are_stored(project, first):
    project.run("-b", chosen(TRACE), **EFFORT)
    found = project.result(TRACE)
    assert not found["samples"]
    assert found["stats_repeat"] == [PROCESSES] * 2


def test_rounds_are_processes_and_those_of_a_plain_benchmark_stay_asvs(project, measured):
    benches = ("-b", chosen(TRACE), "-b", "plain.time_rounds")
    rounds = ("-a", "rounds=3", "-a", "repeat=2")
    project.run("--record-samples", *rounds, *benches, **EFFORT)
    assert measured() == 3
    assert len(set(samples(project.result(TRACE)))) == 3
    assert project.result("plain.time_rounds")["stats_repeat"] == [6]


def test_what_asv_does_not_store_is_measured_each_time(project, measured):
    for number in (1, 2):
        project.asv("run", "-E", "existing", *QUICK)
        assert measured() == number


@pytest.mark.parametrize(
    "option", ["--skip-existing", "--skip-existing-successful", "--skip-existing-commits"]
)
def test_skip_existing_runs_nothing_that_has_a_result(project, measured, option):
    before = json.loads(project.result_file().read_bytes())
    said = project.run(option, "-b", chosen(TRACE), **EFFORT)
    assert "Setting up" not in said
    assert measured() == 0
    assert json.loads(project.result_file().read_bytes()) == before


def test_skip_existing_failed_runs_what_succeeded(project, measured):
    said = project.run("--skip-existing-failed", "-b", r"work\..*track_trace", **EFFORT)
    assert "work.Half" not in said
    assert measured() == PROCESSES


# Other options of run


@pytest.mark.parametrize(
    "words",
    [
        *(("-E", "existing", "--launch-method", each) for each in ("spawn", "forkserver", "auto")),
        *(("--python", "same"), ("-E", f"existing:{sys.executable}")),
    ],
)
def test_every_launch_method_and_name_of_the_environment_measures(project, measured, words):
    project.asv("run", *words, "--set-commit-hash", "HEAD", *QUICK)
    assert measured() == 1
    assert project.result_file().name.endswith(f"{ENV}.json")


def test_cpu_affinity_holds_for_measuring_processes(project, measured):
    project.run("--cpu-affinity", "0", *QUICK)
    assert measured() == 1
    (newest,) = sorted(project.records("work.Wave"), key=lambda r: r.started_at_ms)[-1:]
    assert json.loads(bytes(newest.environment))["host"]["affinity"] == 1


def test_flags_and_the_night_are_a_file_of_their_own(project, first):
    flags = "--xla_cpu_enable_fast_math=true"
    before = project.result_file().read_bytes()
    project.run(*QUICK, XLA_FLAGS=flags, HARNESS_NIGHT="n1")
    assert project.result_file().read_bytes() == before
    (file,) = (project.results / MACHINE).glob("*HARNESS_NIGHTn1*.json")
    stored = json.loads(file.read_text())
    assert stored["env_vars"] == {"XLA_FLAGS": flags, "HARNESS_NIGHT": "n1"}
    file.unlink()


# Profiles


def test_run_profile_stores_the_work_and_the_value(project, measured):
    project.run("--profile", "--quick", "-b", r"^work\.Wave\.track_(trace|lower)\(8")
    assert measured() == 1
    found = project.result(TRACE)
    assert found["result"][0] > 0
    stored = json.loads(project.result_file().read_text())
    columns = dict(zip(stored["result_columns"], stored["results"][TRACE], strict=False))
    profile = zlib.decompress(base64.b64decode(columns["profile"]))
    assert b"trace_to_jaxpr" in profile


@pytest.mark.parametrize(
    ("stage", "function"),
    [
        ("trace", "trace_to_jaxpr"),
        ("lower", "lower"),
        ("compile", "backend_compile"),
        ("compute", "supply"),
    ],
)
def test_profile_shows_the_work_of_a_stage(project, tmp_path, measured, stage, function):
    name = rf"work.Wave.track_{stage}\(8, 'forward', 'cpu'\)"
    said = project.asv("profile", "-E", "existing", "--force", "-o", str(tmp_path / "stats"), name)
    assert "failed" not in said
    names = {name for _, _, name in pstats.Stats(str(tmp_path / "stats")).stats}
    assert any(function in name for name in names)
    assert "look_up" not in names
    assert measured() == 0, "a profile is no measurement"


def test_profile_prints_a_table(project):
    said = project.asv(
        "profile", "-E", "existing", r"work.Wave.track_compute\(8, 'forward', 'cpu'\)"
    )
    assert "function calls" in said


# Reading


def test_show_lists_commits_and_prints_every_benchmark_of_one_and_never_skips_a_file(
    project, first
):
    said = project.asv("show")
    assert project.head[:8] in said
    assert ENV in said
    assert "Skipping" not in said
    said = project.asv("show", "HEAD", "--details", "-b", chosen(TRACE))
    assert TRACE in said
    assert "ci_99" in said
    assert "failed" not in said
    assert TRACE not in project.asv("show", "HEAD", "-E", "existing-py2.7")


def test_update_leaves_results_as_they_are(project, first):
    before = json.loads(project.result_file().read_text())
    project.asv("update")
    assert str(json.loads(project.result_file().read_text())) == str(before)


def test_machine_setup_and_quickstart_are_asvs(project, tmp_path):
    project.asv("machine", "--yes")
    project.know_machine(MACHINE)
    project.asv("setup", "-E", "existing", code=1)  # asv 0.6.6 ends with 1 whatever it did
    project.asv("quickstart", "--dest", str(tmp_path), "--top-level")
    assert (tmp_path / "asv.conf.json").is_file()


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("run -E existing -b nothing_at_all", 1, "No benchmarks selected"),
        ("run -E existing --interleave-rounds -b plain", 1, "cannot be used with existing env"),
        ("run -E existing HEAD^! --quick -b plain", 1, "No range spec"),
        ("run --no-such-option", 2, "unrecognized arguments"),
        (r"profile -E existing plain.Sums.time_sum\(10\)", 0, "time_sum"),
        ("profile --gui list x", 0, "Available profiler GUIs"),
        ("show HEAD --durations", 0, "total duration"),
        ("show HEAD -m nobody", 1, "not found"),
        ("help", 0, "usage: asv"),
        ("--version", 0, "0.6.6"),
    ],
)
def test_asv_says_what_it_says_of_any_suite(project, first, line, code, said):
    assert said in project.asv(*line.split(), code=code)


# A second commit


@pytest.fixture(scope="module")
def second(project, first):
    """A commit that makes one workload another, and another slower by what it imports."""
    project.run("--record-samples", "-b", "work.Wave", "-b", "plain.Sums", **EFFORT)
    project.commit()
    project.run("--record-samples", "-b", "work.Wave", "-b", "plain.Sums", **EFFORT)
    return project


def test_compare_has_a_row_for_each_cell(second):
    said = second.asv("compare", "HEAD^", "HEAD", "--factor", "1000")
    assert len(re.findall(r"work\.Wave\.track_trace\(", said)) == 2
    assert "gpu" not in said
    assert len(said.splitlines()) < 60


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        *((["--split"], TRACE), (["--sort", "ratio"], TRACE), (["--sort", "name"], TRACE)),
        (["--only-changed", "--factor", "1000000"], rf"^((?!{TRACE})[\s\S])*$"),
        (["--no-stats", "--factor", "1.0000001"], r"(?m)^\| [+-] "),
    ],
)
def test_compare_takes_its_options(second, options, shown):
    assert re.search(shown, second.asv("compare", "HEAD^", "HEAD", *options))


def test_compare_keeps_environments_apart(second):
    """One that only one commit has is named, and left out unless it is asked for."""
    assert "not found" in second.asv("compare", "HEAD^", "HEAD", "-m", "nobody", code=1)
    file = second.result_file()
    other = file.with_name(f"{file.stem}-other.json")
    stored = json.loads(file.read_text())
    other.write_text(json.dumps({**stored, "env_name": f"{ENV}-other"}))
    said = second.asv("compare", "HEAD^", "HEAD")
    assert f"{ENV}-other is left out: only HEAD has it" in said
    asked = second.asv("compare", "HEAD^", "HEAD", "-E", ENV, "-E", f"{ENV}-other")
    assert f"[{MACHINE}/{ENV}-other]" in asked
    other.unlink()


def test_preview_serves_the_pages_of_one_commit(second):
    second.asv("publish", "HEAD^!", "--no-pull", "-o", "served")
    with (
        previewed(second, "-o", "served") as address,
        urllib.request.urlopen(f"{address}index.json") as answer,
    ):
        index = json.load(answer)
    assert list(index["revision_to_hash"].values()) == [second.head]
    assert TRACE in index["benchmarks"]


def test_rm_removes_one_benchmark_and_then_a_commit(second):
    second.asv("rm", "-y", "benchmark=plain.*", f"commit_hash={second.head}")
    assert second.names()
    assert not any(name.startswith("plain.") for name in second.names())
    second.asv("rm", "-y", f"commit_hash={second.head}", f"jax={JAX}")
    assert not second.result_file().exists()


def test_results_of_two_machines_keep_their_own_targets(second):
    """What a GPU machine listed stays listed, and no machine shows the other's cells."""
    listed = second.results / "benchmarks.json"
    about = json.loads(listed.read_text())
    about[TRACE]["params"][-1] = ["'cpu'", "'gpu'", "'tpu'"]
    listed.write_text(json.dumps(about))
    second.run(*QUICK)
    assert second.benchmarks()[TRACE]["params"][-1] == ["'cpu'", "'gpu'"]
    assert "failed" not in second.asv("show", "HEAD", "-b", chosen(TRACE))
