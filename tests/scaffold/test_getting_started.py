"""docs/getting-started.md: every command and every line of Python on the page is run, in order."""

import re
import sys
from pathlib import Path

from tests.scaffold.package import Package

PAGE = Path(__file__).parents[2] / "docs" / "getting-started.md"
NOT_RUN = "python -m pip"
"""Needs a package index; the paths of the test stand for what it installs."""


def blocks(language):
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_the_page_leads_from_a_package_to_a_graph(tmp_path):
    models, analysis = blocks("python")
    package = Package(tmp_path, models=models)
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    ran = [line for line in lines if not line.startswith(NOT_RUN)]
    assert [line.split()[0] for line in ran].count("harness") == 3
    said = "".join(package.run(line) for line in ran)
    assert "failed" not in said.replace("0 failed", "")
    assert (package.folder / ".asv" / "html" / "index.html").is_file()

    package.write(package.folder / "analysis.py", analysis)
    shown = package.run(f'"{sys.executable}" analysis.py')
    rows = [
        line for line in shown.splitlines() if "predict.Predict" in line and " execute " in line
    ]
    assert {row.split()[2] for row in rows} == {"64", "256"}
    assert all(row.endswith(" ok") for row in rows)
    found = list((package.folder / "results").glob("*/*-existing-*.json"))
    assert len(found) == 1
    assert package.run("git status --porcelain -- asv.conf.json benchmarks") == ""
