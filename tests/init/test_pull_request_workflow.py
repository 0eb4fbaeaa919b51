"""The steps of the workflow for pull requests that `harness init` writes, with a real merge."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from tests.init.package import MODELS, Package

COMPARE, COMMENT = "Compare", "One comment, which is brought up to date"

FORGE = """#!/usr/bin/env python3
# Comments of one issue, in a file, for the three calls that the workflow makes.
import json, pathlib, subprocess, sys
kept = pathlib.Path({kept!r})
comments = json.loads(kept.read_text()) if kept.exists() else []
words = sys.argv[1:]
assert words.pop(0) == "api"
body = next((pathlib.Path(w[6:]).read_text() for w in words if w.startswith("body=@")), None)
place = next(word for word in words if word.startswith("repos/"))
if "POST" in words:
    assert place == "repos/me/mine/issues/7/comments"
    comments.append({{"id": len(comments) + 1, "body": body}})
elif "PATCH" in words:
    (comment,) = [c for c in comments if place == f"repos/me/mine/issues/comments/{{c['id']}}"]
    comment["body"] = body
else:
    query = words[words.index("--jq") + 1]
    subprocess.run(["jq", "-r", query], input=json.dumps(comments), text=True, check=True)
kept.write_text(json.dumps(comments))
"""

SLOWER = MODELS.replace(
    "    return x.sum()",
    "    for _ in range(40):\n        x = jax.numpy.sin(x) + 1\n    return x.sum()",
)
TOTAL = '--function mypackage.models:total --arg "float32[]"'
"""One case: a scalar has no size to be swept."""


class Job:
    """A package with a branch, and a runner that has its merge checked out."""

    def __init__(self, folder, measured=True):
        self.package = package = Package(folder)
        if measured:
            package.init(TOTAL)
            package.run("git add --all && git commit --quiet -m Benchmarks")
        package.run("git checkout --quiet -b branch")
        if not measured:
            package.init(TOTAL)
        package.write(package.folder / "src/mypackage/models.py", SLOWER)
        package.run("git add --all && git commit --quiet -m Slower")
        package.run("git checkout --quiet trunk && git merge --quiet --no-ff --no-edit branch")
        self.temp = folder / "temp"
        self.temp.mkdir()
        self.comments = folder / "comments.json"
        package.write(package.bin / "gh", FORGE.format(kept=str(self.comments)))
        (package.bin / "gh").chmod(0o755)

    def step(self, name, code=0):
        files = {"RUNNER_TEMP": "", "GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary"}
        given = {variable: str(self.temp / file) for variable, file in files.items()}
        given |= {"GITHUB_REPOSITORY": "me/mine", "NUMBER": "7", "MARK": "<!-- jax-harness -->"}
        given |= {"EFFORT": "4x1", "SECONDS_AT_MOST": "480"}
        return self.package.step("benchmarks.yml", name, code, **given)

    def said(self):
        return [comment["body"] for comment in json.loads(self.comments.read_text())]


@pytest.mark.nightly
def test_a_slower_branch_is_named(tmp_path):
    job = Job(tmp_path)
    job.step(COMPARE)
    assert (job.temp / "output").read_text() == "code=1\n"
    assert "total.Total" in (job.temp / "summary").read_text()
    assert "slower" in (job.temp / "comment.md").read_text()


@pytest.mark.skipif(shutil.which("jq") is None, reason="no jq, which `gh` has inside")
def test_there_is_one_comment_that_is_brought_up_to_date(tmp_path):
    job = Job(tmp_path, measured=False)
    for said in ("one is slower", "nothing is slower"):
        (job.temp / "comment.md").write_text(said)
        job.step(COMMENT)
        assert job.said() == [f"<!-- jax-harness -->\n{said}"]


@pytest.mark.nightly
def test_what_had_no_workloads_before_is_measured_once(tmp_path):
    job = Job(tmp_path, measured=False)
    job.step(COMPARE)
    assert (job.temp / "output").read_text() == "code=0\n"
    assert "total.Total" in (job.temp / "comment.md").read_text()


def test_the_check_fails_where_something_is_slower_or_broken(tmp_path):
    package = Package(tmp_path)
    package.init()
    text = package.text(".github/workflows/benchmarks.yml")
    (line,) = re.findall(r"        run: (case \$CODE in .*)\n", text)
    for code, ends in (("0", 0), ("1", 1), ("4", 0), ("7", 7)):
        package.run(line, code=ends, CODE=code)
