"""`asv publish` on the results of two machines that were copied together."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.asv.project import Project
from tests.frame.trees import write_asv

NAME = "family.Work.track_trace"
LISTED = {
    NAME: {
        **{"name": NAME, "type": "time", "unit": "seconds", "version": "1", "code": ""},
        **{"param_names": [], "params": [], "timeout": 60},
    }
}


@pytest.mark.nightly
def test_pages_show_both_machines(tmp_path):
    project = Project(tmp_path, {})
    for machine, value in (("box", 1.0), ("rig", 0.5)):
        result = {NAME: [[value], [], "1", 1_700_000_000_000, 1.0]}
        write_asv(tmp_path / machine, result, LISTED, machine, commit_hash=project.head)
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
