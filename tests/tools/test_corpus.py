"""The command that holds the harness against a script, on two kernels in the shape of npbench's."""

import json
import re
import sys

import numpy as np
import pytest

from tests import forks
from tools.corpus.__main__ import HERE, ROOT
from tools.corpus.table import shift, verdict

SOURCES = {
    "smooth": {
        "sizes": {"S": {"STEPS": 2, "N": 8}, "M": {"STEPS": 3, "N": 16}},
        "init": {"func_name": "initialize", "input_args": ["N"], "output_args": ["A"]},
        "input_args": ["STEPS", "A"],
        "array_args": ["A"],
        "numpy": "def initialize(N):\n    return np.ones((N, N))\n",
        "jax": "@functools.partial(jax.jit, static_argnums=0)\n"
        "def kernel(STEPS, A):\n    return jax.lax.fori_loop(0, STEPS, lambda i, a: a / 2, A)\n",
    },
    "plain": {
        "sizes": {"S": {"N": 8}, "M": {"N": 16}},
        "init": {"func_name": "begin", "input_args": ["N"], "output_args": ["alpha", "x"]},
        "input_args": ["alpha", "N", "x"],
        "array_args": ["x"],
        "numpy": "def begin(N):\n    return 1.5, np.arange(N, dtype=np.float64)\n",
        "jax": "def kernel(alpha, N, x):\n    return alpha * x[: N // 2]\n",
    },
}


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkouts")
    (folder / "npbench/bench_info").mkdir(parents=True)
    for name, source in SOURCES.items():
        info = {
            "relative_path": f"group/{name}",
            "module_name": name,
            "func_name": "kernel",
            "parameters": source["sizes"],
            **{key: source[key] for key in ("init", "input_args", "array_args")},
        }
        (folder / f"npbench/bench_info/{name}.json").write_text(json.dumps({"benchmark": info}))
        place = folder / f"npbench/npbench/benchmarks/group/{name}"
        place.mkdir(parents=True)
        (place / f"{name}.py").write_text(f"import numpy as np\n\n{source['numpy']}")
        (place / f"{name}_jax.py").write_text(f"import functools\nimport jax\n\n{source['jax']}")
    (folder / "npbench/bench_info/no_jax.json").write_text(
        json.dumps({"benchmark": {**info, "module_name": "no_jax"}})
    )
    return folder


def corpus(*arguments):
    return forks.run([sys.executable, "-m", "tools.corpus", *map(str, arguments)], cwd=ROOT)


@pytest.mark.nightly
def test_the_command_measures_with_both_writes_the_page_and_resumes(checkouts, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Head.\n<!-- --markdown docs/foreign-programs.md -->\nold\n")
    command = ["npbench", "--checkouts", checkouts, "--processes", 1, "--passes", 1]
    command += ["--results", tmp_path / "results", "--markdown", page]
    done = corpus(*command)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.startswith("Head.\n")
    assert "old" not in text
    for name in ("npbench.plain S", "npbench.plain M", "npbench.smooth S", "npbench.smooth M"):
        (row,) = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
        assert row.count("s, ") == 6  # every stage was measured by the script
        assert "–" not in row  # and by the harness
    samples = (tmp_path / "results/independent.jsonl").read_text()
    again = corpus(*command)
    assert again.returncode == 0
    assert page.read_text() == text
    assert (tmp_path / "results/independent.jsonl").read_text() == samples


def test_what_is_not_there_says_what_to_clone(tmp_path):
    done = corpus("npbench", "--checkouts", tmp_path)
    assert done.returncode == 2
    assert "git clone --depth 1 https://github.com/spcl/npbench FOLDER/npbench" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_takes_too_long_is_left_out_and_said(checkouts, tmp_path):
    command = ["npbench", "--checkouts", checkouts, "--processes", 1, "--results", tmp_path]
    done = corpus(*command, "--limit-s", 0.01)
    assert done.returncode == 4
    assert "Nothing was measured: its process takes more than 0.01 s." in done.stderr


def test_the_script_is_short_and_knows_nothing_of_the_harness():
    text = (HERE / "independent.py").read_text()
    assert len(text.splitlines()) <= 150
    for file in (HERE / "independent.py", *(HERE / "programs").glob("*.py")):
        own = re.findall(r"^\s*(?:import|from) ((?:harness|tests)\b\S*)", file.read_text(), re.M)
        assert set(own) <= {"tools.corpus.programs.program"}, file


def test_ratios_have_the_interval_of_hodges_and_lehmann():
    rng = np.random.default_rng(0)
    hit = 0
    for _ in range(300):
        ours, theirs = np.exp(rng.normal(0, 0.1, (2, 5)))
        _, low, high = shift(ours * 1.1, theirs)
        hit += low <= 1.1 <= high
    assert 0.92 <= hit / 300 <= 1
    assert np.isnan(shift([1.0], [2.0])[1])
    assert shift([4.0], [2.0])[0] == 2


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [
        (1.04, 0.9, 1.3, "within"),
        (1.08, 0.99, 1.2, "unsure"),
        (1.2, 1.1, 1.3, "beyond"),
        (0.8, 0.7, 0.9, "beyond"),
        (1.2, np.nan, np.nan, "unsure"),
    ],
)
def test_a_ratio_is_within_beyond_or_unsure(ratio, low, high, said):
    assert verdict(ratio, low, high, 0.05) == said
