"""Whether other tools read what `harness export --format` writes.

    python -m tools.exports [CLONES]

The results in docs/example-results are written in every format, twice: as they are, and with all
times doubled. pyperf and pytest-benchmark, at pinned versions and installed in a temporary folder,
compare the two and have to find twice the time. CLONES is a folder with a clone of
`bencherdev/bencher`, as OWNER/NAME: its published schema judges the file for Bencher. What
github-action-benchmark wants (`name`, `unit`, `value`; `range` and `extra` are text) is checked
here. Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import jsonschema

from harness.frame.exchange import Tool, document
from harness.frame.load import everything

RESULTS = Path(__file__).parents[1] / "docs" / "example-results"
TOOLS = ("pyperf==2.11.0", "pytest-benchmark==5.3.1")
SCHEMA = ("bencherdev/bencher", "services/console/public/bmf.json")
TEXT, NUMBER = {"type": "string"}, {"type": "number"}
ENTRIES = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {"name": TEXT, "unit": TEXT, "value": NUMBER, "range": TEXT, "extra": TEXT},
        "required": ["name", "unit", "value"],
        "additionalProperties": False,
    },
}


def written(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Write all formats, as measured and doubled; return the files by tool."""
    frame = everything(RESULTS)
    double = frame.assign(
        value=frame["value"] * 2,
        samples=[[2 * one for one in samples] for samples in frame["samples"]],
    )
    found = {}
    for tool in Tool:
        files = folder / f"{tool}-a.json", folder / f"{tool}-b.json"
        for file, rows in zip(files, (frame, double), strict=True):
            file.write_bytes(document(rows, tool)[0])
        found[tool.value] = files
    return found


def by_pyperf(bin_: Path, a: Path, b: Path) -> Iterator[str]:
    """Yield what is wrong when pyperf reads two files."""
    for words in (["stats", str(a)], ["compare_to", str(a), str(b)]):
        done = subprocess.run(
            [bin_ / "python", "-m", "pyperf", *words], capture_output=True, text=True, check=False
        )
        if done.returncode or done.stderr:
            yield f"pyperf {words[0]}: exit code {done.returncode}: {done.stderr[-500:]}"
    if "Geometric mean: 2.00x slower" not in done.stdout:
        yield f"pyperf compare_to: {done.stdout[-500:]}"


def by_pytest_benchmark(bin_: Path, a: Path, b: Path) -> Iterator[str]:
    """Yield what is wrong when pytest-benchmark reads two files."""
    command = [bin_ / "pytest-benchmark", "compare", a, b, "--csv", a.with_suffix(".csv")]
    # It loads the conftest.py of the folder that it is called in.
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=a.parent)
    tests = re.findall(r"benchmark '\w+': (\d+) tests", done.stdout)
    expected = 2 * len(json.loads(a.read_text())["benchmarks"])
    if done.returncode or sum(map(int, tests)) != expected:
        yield f"pytest-benchmark compare: exit code {done.returncode}: {done.stderr[-500:]}"


def main() -> int:
    """Print what is wrong, or how many rows each tool has read."""
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder))
        venv.create(Path(folder) / "venv", with_pip=True)
        bin_ = Path(folder) / "venv" / "bin"
        install = [bin_ / "python", "-m", "pip", "install", "--quiet", *TOOLS]
        subprocess.run(install, check=True)
        problems += by_pyperf(bin_, *files["pyperf"])
        problems += by_pytest_benchmark(bin_, *files["pytest-benchmark"])
        documents = {tool: json.loads(a.read_text()) for tool, (a, _) in files.items()}
        jsonschema.validate(documents["benchmark-action"], ENTRIES)
        schema = "not asked: no clone named"
        if len(sys.argv) > 1:
            repository, path = SCHEMA
            show = ["git", "-C", str(Path(sys.argv[1]) / repository), "show", f"HEAD:{path}"]
            text = subprocess.run(show, capture_output=True, text=True, check=True).stdout
            jsonschema.validate(documents["bencher"], json.loads(text))
            schema = "valid"
        print(f"benchmark-action: {len(documents['benchmark-action'])} entries, valid")
        print(f"bencher: {len(documents['bencher'])} benchmarks; its schema: {schema}")
        for tool in ("pytest-benchmark", "pyperf"):
            print(f"{tool}: {len(documents[tool]['benchmarks'])} benchmarks compared")
    for problem in problems:
        print(problem)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
