"""`asv publish` on the results of two machines that were copied together."""

from __future__ import annotations

import json
import shutil

from tests.asv.project import Project
from tests.frame.trees import ASV_COLUMNS

NAME = "family.Work.track_trace"


def tree(results, machine, commit, value):
    """Write what asv writes of a run on one machine."""
    about = {"machine": machine, "cpu": machine, "arch": "x", "os": "x", "ram": "1", "num_cpu": "1"}
    folder = results / machine
    folder.mkdir(parents=True)
    (folder / "machine.json").write_text(json.dumps({**about, "version": 1}))
    content = {
        "commit_hash": commit,
        "env_name": "existing",
        "date": 1_700_000_000_000,
        "params": {**about, "python": "3.11"},
        "python": "3.11",
        "requirements": {},
        "env_vars": {},
        "result_columns": ASV_COLUMNS,
        "results": {NAME: [[value], [], "1", 1_700_000_000_000, 1.0]},
        "durations": {},
        "version": 2,
    }
    (folder / f"{commit[:8]}-existing.json").write_text(json.dumps(content))
    described = {
        "name": NAME,
        "code": "",
        "param_names": [],
        "params": [],
        "timeout": 60,
        "type": "time",
        "unit": "seconds",
        "version": "1",
    }
    (results / "benchmarks.json").write_text(json.dumps({NAME: described, "version": 2}))


def test_pages_show_both_machines(tmp_path):
    project = Project(tmp_path, {})
    for machine, value in (("box", 1.0), ("rig", 0.5)):
        tree(tmp_path / machine, machine, project.head, value)
        shutil.copytree(tmp_path / machine, project.results, dirs_exist_ok=True)

    project.asv("publish", "--no-pull")

    pages = project.folder / ".asv" / "html"
    index = json.loads((pages / "index.json").read_text())
    assert sorted(index["machines"]) == ["box", "rig"]
    assert sorted(params["machine"] for params in index["graph_param_list"]) == ["box", "rig"]
    drawn = {
        next(part for part in path.parts if part.startswith("machine-")): path
        for path in pages.glob(f"graphs/**/{NAME}.json")
        if "summary" not in path.parts
    }
    values = {name: json.loads(path.read_text())[0][1] for name, path in drawn.items()}
    assert values == {"machine-box": 1.0, "machine-rig": 0.5}
