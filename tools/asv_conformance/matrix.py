"""Verbs and options in environments that asv makes: two JAX releases, four commits."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.asv.project import MACHINE, PYTHON, Installed, copied
from tests.docs import asv_scripts
from tests.output.report.pages import start_browser, wait_until
from tools.asv_conformance.suite import PLAIN, chosen, previewed

RELEASES = ("0.10.1", "0.10.2")

WORK = """
import toy
from harness import Workload, spec


class Wave(Workload):
    sweep = {"size": [8]}
    targets = ("cpu",)
    version = "1"
    function = staticmethod(toy.wave)

    def inputs(self, size):
        return spec((size,))
"""

TOY = """
import jax.numpy as jnp


def wave(x):
    for _ in range(TIMES):
        x = jnp.sin(x)
    return x
"""

PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "throwaway"
version = "1"

[tool.setuptools]
py-modules = ["toy"]
"""

TRACE = "work.Wave.track_trace"
ONCE = ("--show-stderr", "-b", chosen(TRACE))
EFFORT = {"HARNESS_EFFORT": "2x1", "HARNESS_FIRST_CALLS": "0"}


def env(jax):
    return f"virtualenv-py{PYTHON}-jax{jax}"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Four commits, the third of which makes tracing many times slower."""
    folder = tmp_path_factory.mktemp("matrix")
    source = copied(Path(__file__).parents[2], folder / "source", "harness")
    wheels = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*wheels, "-w", str(folder), str(source)], check=True)
    (wheel,) = folder.glob("*.whl")
    project = Installed(
        folder / "on",
        {"work": WORK, "plain": PLAIN},
        environment_type="virtualenv",
        pythons=[PYTHON],
        matrix={"req": {"jax": list(RELEASES), "pip+asv_runner": ["0.3.2"]}},
        build_cache_size=8,
        build_command=[
            "python -m pip wheel --no-deps --no-build-isolation -w {build_cache_dir} {build_dir}"
        ],
        install_command=[
            f"in-dir={{env_dir}} python -m pip install {wheel}",
            "in-dir={env_dir} python -m pip install --force-reinstall --no-deps {wheel_file}",
        ],
        install_timeout=900,
        show_commit_url="https://example.com/commit/",
    )
    project.write("pyproject.toml", PYPROJECT)
    project.commits = []
    for number, times in enumerate((1, 1, 400, 400)):
        project.write("toy.py", f"# {number}\nTIMES = {times}\n{TOY}")
        if number:
            project.commits.append(project.commit())
        else:
            project.git("add", "--all")
            project.git("commit", "--quiet", "--amend", "--no-edit")
            project.git("tag", "v1")
            project.commits.append(project.head)
    return project


@pytest.fixture(scope="module")
def made(project):
    project.asv("setup", "--parallel", "2", timeout_s=900, code=1)  # asv 0.6.6 ends with 1
    return project


@pytest.fixture(scope="module")
def every(made):
    """All commits measured, with samples."""
    made.said = made.asv("run", "ALL", "--record-samples", *ONCE, timeout_s=900, **EFFORT)
    return made


def at(project, number, jax=RELEASES[1]):
    return project.result(TRACE, env=env(jax), commit=project.commits[number])


def of(project, number, jax=RELEASES[1]):
    return at(project, number, jax)["samples"][0]


def processes(project):
    return {r.process for r in project.records("work.Wave")}


@pytest.mark.parametrize("jax", RELEASES)
def test_every_release_has_a_file_that_says_what_was_installed(every, jax):
    file = every.result_file(env=env(jax), commit=every.commits[0])
    stored = json.loads(file.read_text())
    assert stored["requirements"] == {"jax": jax, "jaxlib": jax}
    assert stored["params"]["jaxlib"] == jax
    assert {r.jax for r in every.records("work.Wave") if r.env == env(jax)} == {jax}


@pytest.mark.parametrize("number", range(4))
def test_all_measures_each_commit_with_its_own_code(every, number):
    values = of(every, number)
    assert len(set(values)) == 2
    slow = of(every, 3)
    assert (max(values) * 3 < min(slow)) == (number < 2)


@pytest.mark.parametrize(
    ("words", "commits"),
    [
        (["HEAD~2..HEAD"], [2, 3]),
        (["ALL", "--steps", "2"], 2),
        (["HEAD^!"], [3]),
        (["ALL", "--date-period", "1y"], 1),
    ],
)
def test_a_range_measures_its_commits_anew(every, words, commits):
    before = {number: of(every, number) for number in range(4)}
    every.asv(*("run", *words, "--record-samples", "-E", env(RELEASES[1])), *ONCE, **EFFORT)
    changed = [number for number in range(4) if of(every, number) != before[number]]
    assert (len(changed) if isinstance(commits, int) else changed) == commits


def test_tags_are_measured_under_their_names(every):
    before = processes(every)
    every.asv("run", "TAGS", "-E", env(RELEASES[1]), *ONCE, **EFFORT)
    assert len(processes(every) - before) == 2
    (record,) = {r.commit for r in every.records("work.Wave") if r.process not in before}
    assert record == every.commits[0]  # asv files its own under v1


def test_a_hashfile_measures_its_commits(every, tmp_path):
    file = tmp_path / "hashes"
    file.write_text(f"{every.commits[1]}\n")
    before = of(every, 1)
    words = ("run", f"HASHFILE:{file}", "--record-samples", "-E", env(RELEASES[1]))
    every.asv(*words, *ONCE, **EFFORT)
    assert of(every, 1) != before


def test_new_finds_nothing_new(every):
    assert "No commit hashes selected" in every.asv("run", "NEW", *ONCE, code=1)


@pytest.mark.parametrize("option", ["--skip-existing", "--skip-existing-commits"])
def test_existing_commits_are_skipped_where_asked(every, option):
    before = processes(every)
    every.asv("run", "EXISTING", option, "-E", env(RELEASES[1]), *ONCE, **EFFORT)
    assert processes(every) == before


def test_interleaved_rounds_measure_a_process_of_each_commit_in_turns(every):
    before = processes(every)
    words = ("run", "HEAD~1..HEAD", "--interleave-rounds", "--record-samples")
    said = every.asv(*words, "-E", env(RELEASES[1]), *ONCE, HARNESS_EFFORT="3x1")
    assert re.findall(r"\(round (\d)/(\d)\)", said) == [("1", "3"), ("2", "3"), ("3", "3")]
    assert len(processes(every) - before) == 3
    assert len(set(of(every, 3))) == 3
    assert at(every, 3)["stats_repeat"] == [3]
    newest = [r for r in every.records("work.Wave") if r.process not in before]
    assert len({r.replicate for r in newest}) == 3, "the frame has all of them"


def test_interleaved_rounds_of_two_commits_take_turns(every):
    before = processes(every)
    words = ("run", "HEAD~2..HEAD", "--interleave-rounds", "-a", "rounds=2")
    every.asv(*words, "-E", env(RELEASES[1]), *ONCE, **EFFORT)
    new = [r for r in every.records("work.Wave") if r.process not in before]
    order = [r.commit for r in sorted(new, key=lambda r: r.started_at_ms)]
    assert len(order) == 4
    assert order[0] != order[1] == order[2] != order[3]


def test_continuous_measures_both_commits_each_time(every):
    seen = []
    for base, head in ((0, 1), (1, 2)):
        before = processes(every)
        words = (every.commits[base], every.commits[head], "-E", env(RELEASES[1]), "--quick")
        code = 1 if head == 2 else 0
        said = every.asv("continuous", *words, "--factor", "3", *ONCE, code=code)
        assert len(processes(every) - before) == 2
        seen.append(of(every, 1))
        assert ("PERFORMANCE DECREASED" in said) == (head == 2)
    assert seen[0] != seen[1], "the one in both pairs was measured twice"


def test_continuous_interleaves_by_default_and_not_where_told(every):
    words = (every.commits[0], every.commits[1], "-E", env(RELEASES[1]), "--factor", "1000")
    said = every.asv("continuous", *words, *ONCE, **EFFORT)
    assert "(round 2/2)" in said
    said = every.asv("continuous", "--no-interleave-rounds", *words, *ONCE, **EFFORT)
    assert "(round" not in said
    assert len(set(of(every, 1))) == 2


@pytest.mark.parametrize("options", [["--skip-save"], []])
def test_find_measures_anew_and_finds_the_commit(made, options):
    before, files = processes(made), list(made.results.glob(f"{MACHINE}/*-*.json"))
    stored = {file: file.read_bytes() for file in files}
    # The first three commits: two alike, and the slow one.
    words = ("find", made.commits[2], TRACE, "-E", env(RELEASES[1]), *options)
    said = made.asv(*words, HARNESS_EFFORT="1x1", HARNESS_FIRST_CALLS="0", timeout_s=900)
    assert f"Greatest regression found: {made.commits[2][:8]}" in said
    if options:
        assert {file: file.read_bytes() for file in files} == stored
    else:
        assert len(processes(made) - before) >= 2


def test_find_inverted_finds_an_improvement(every):
    words = ("find", f"{every.commits[0]}..HEAD", TRACE, "--invert", "--skip-save")
    said = every.asv(*words, "-E", env(RELEASES[1]), HARNESS_EFFORT="1x1")
    assert "Greatest improvement found" in said


def test_profile_of_a_revision_shows_its_work(every, tmp_path):
    name = rf"{TRACE}\(8, 'forward', 'cpu'\)"
    words = ("profile", name, every.commits[2], "-E", env(RELEASES[1]), "--force")
    said = every.asv(*words)
    assert re.search(r"\d+ +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ toy\.py:\d+\(wave\)", said)


def test_compare_has_a_line_for_each_release(every):
    said = every.asv("compare", every.commits[0], every.commits[2])
    for jax in RELEASES:
        assert f"[{MACHINE}/{env(jax)}]" in said


def test_publish_keeps_releases_apart_and_finds_the_regression(every):
    every.asv("publish")
    pages = every.folder / ".asv" / "html"
    index = json.loads((pages / "index.json").read_text())
    assert index["params"]["jax"] == index["params"]["jaxlib"] == list(RELEASES)
    for jax in RELEASES:
        (graph,) = pages.glob(f"graphs/**/jax-{jax}/**/{TRACE}.json")
        points = json.loads(graph.read_text())
        assert [round(value[0], 9) for _, value in points] == [
            round(at(every, number, jax)["result"][0], 9) for number in range(4)
        ]
    found = json.loads((pages / "regressions.json").read_text())["regressions"]
    assert {entry[2]["jax"] for entry in found if entry[0].startswith(TRACE)} == set(RELEASES)


@pytest.fixture(scope="module")
def served(every, tmp_path_factory):
    """The pages in Chromium: asv's JavaScript wants a server."""
    every.asv("publish")
    asv_scripts.install(every.folder / ".asv" / "html")
    browser = start_browser(tmp_path_factory.mktemp("profile"))
    with previewed(every) as browser.address:
        yield browser
    browser.quit()


def test_the_page_of_a_benchmark_draws_a_line_for_each_release(served):
    served.get(f"{served.address}#{TRACE}")
    wait_until(served, "document.querySelectorAll('#main-graph canvas').length > 0")
    labels = "[...document.querySelectorAll('#graphdisplay-navigation *')].map(e => e.textContent)"
    shown = wait_until(served, labels)
    for jax in RELEASES:
        assert any(jax in text for text in shown)


def test_a_click_on_a_point_leads_to_its_commit(served, every):
    served.get(f"{served.address}#{TRACE}")
    wait_until(served, "document.querySelectorAll('#main-graph canvas').length > 0")
    served.execute_script("window.opened = []; window.open = url => window.opened.push(url)")
    plot = "$('#main-graph').data('plot')"
    wait_until(served, f"{plot} && {plot}.getData().length > 0")
    served.execute_script(
        "const plot = $('#main-graph').data('plot'); const data = plot.getData()[0];"
        "$('#main-graph').trigger('plotclick',"
        " [{}, {datapoint: data.data[2], dataIndex: 2, series: data}])"
    )
    assert served.execute_script("return window.opened") == [
        f"https://example.com/commit/{every.commits[2][:8]}"
    ]


def test_the_page_of_regressions_names_the_commit(served, every):
    served.get(f"{served.address}#regressions")
    text = wait_until(served, "document.querySelector('#regressions-body table')?.textContent")
    assert TRACE in text
    assert every.commits[2][:8] in text


def test_the_list_has_a_row_for_each_release(served):
    served.get(f"{served.address}#summarylist")
    text = wait_until(served, "document.querySelector('#summarylist-body table')?.textContent")
    assert TRACE in text
