"""The notebook of the pages: it runs, and shows what it showed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "docs" / "analysis.ipynb"
OF_A_MACHINE = re.compile(r"(?<![\w.])/(home|root|tmp|work|Users|usr|opt|private)/")


def executed(path):
    for package in ("nbclient", "ipykernel", "altair", "vl_convert"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install -e '.[dev]'")
    return subprocess.run(
        [sys.executable, "-m", "tools.notebook", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def code_cells(path):
    cells = json.loads(path.read_text())["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def plain(cell):
    """Return the text of the last output of a cell."""
    return "".join(cell["outputs"][-1]["data"]["text/plain"])


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The notebook, executed in a copy beside the committed results."""
    folder = tmp_path_factory.mktemp("place of its own")
    shutil.copytree(ROOT / "docs" / "example-results", folder / "docs" / "example-results")
    path = folder / "docs" / NOTEBOOK.name
    shutil.copy(NOTEBOOK, path)
    done = executed(path)
    assert done.returncode == 0, done.stderr[-3000:]
    return path


@pytest.fixture(params=["as committed", pytest.param("executed here", marks=pytest.mark.nightly)])
def notebook(request):
    return NOTEBOOK if request.param == "as committed" else request.getfixturevalue("copy")


def test_every_cell_has_run_from_top_to_bottom_without_an_error(notebook):
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"execute_result", "stream"}
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert all(cell["outputs"] for cell in cells[1:])


def test_there_are_figures_and_nothing_shows_a_path_of_the_machine(notebook):
    text = notebook.read_text()
    assert text.count("image/svg+xml") == 2
    assert not OF_A_MACHINE.search(text)
    assert str(ROOT) not in text
    assert len(text.encode()) < 300_000


@pytest.mark.nightly
def test_the_committed_outputs_are_of_the_committed_results(copy):
    _, first, *_ = code_cells(NOTEBOOK)
    _, now, *_ = code_cells(copy)
    assert plain(first) == plain(now), "run `make notebook` and commit docs/analysis.ipynb"


def test_a_cell_that_fails_is_an_error_and_the_file_stays_as_it_was(tmp_path):
    broken = json.loads(NOTEBOOK.read_text())
    broken["cells"] = [cell for cell in broken["cells"] if cell["cell_type"] == "code"][:1]
    broken["cells"][0]["source"] = "raise ValueError('as it should')"
    path = tmp_path / "broken.ipynb"
    path.write_text(json.dumps(broken))
    before = path.read_text()
    done = executed(path)
    assert done.returncode != 0
    assert "as it should" in done.stderr
    assert path.read_text() == before


@pytest.mark.parametrize("said", ["File /opt/x.py", '"/tmp/a"', "in /home/me/results"])
def test_a_path_of_a_machine_would_be_noticed(said):
    assert OF_A_MACHINE.search(said)
    assert not OF_A_MACHINE.search("results/cpu/records, a/home/b, 12 B/s")
