"""Which code a process ran: what it is called, and when it is other code now."""

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from harness.workload import code
from harness.workload.location import Source

ROOT = Path(code.__file__).parents[2]

PLAIN = [
    *(f"project/{name}.py" for name in ("late", "generated", "spaced/deep")),
    *(f"project/benchmarks/{name}.py" for name in ("sibling", "unused")),
    *(f"project/package/{name}.py" for name in ("parts", "lazy", "data/table")),
    *(f"env/site-packages/installed/{name}.py" for name in ("module", "spare")),
    "elsewhere/outside/inner.py",
]
ABOUT = "env/site-packages/its_name-1.0.dist-info"
FILES = {
    **dict.fromkeys(PLAIN, "VALUE = 1\n"),
    "project/.git/HEAD": "",
    "project/benchmarks/__init__.py": "",
    "project/benchmarks/workload.py": (
        "import near, package, archived, outside, generated, installed, spaced.deep\n"
        "from . import sibling\n"
        "def function():\n    from package import lazy\n    import late\n"
    ),
    "project/near.py": "def f(x):\n    return x + 1\n",
    "project/package/__init__.py": "from package import parts\nfrom .data import table\n",
    "project/package/data/__init__.py": "",
    "elsewhere/outside/__init__.py": "from outside import inner\n",
    "env/site-packages/installed/__init__.py": "from installed import module\n",
    f"{ABOUT}/METADATA": "Metadata-Version: 2.1\nName: its-name\nVersion: 1.0\n",
    f"{ABOUT}/top_level.txt": "installed\n",
    f"{ABOUT}/RECORD": (
        "installed/__init__.py,sha256=a,1\ninstalled/module.py,sha256=b,1\n"
        "installed/spare.py,sha256=c,1\nits_name-1.0.dist-info/RECORD,,\n"
    ),
}

CHILD = """\
import json, multiprocessing, sys  # which gives this module another name
sys.path[:0] = {paths!r}
from pathlib import Path
from harness.workload.code import LoadedCode, project_folder
from harness.workload.location import Source, load
loaded = LoadedCode()
source = Source("benchmarks.workload", "function", {file!r})
function = load(source)
function()
{edit}
print(json.dumps(loaded.entries(project_folder(source))))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A project, a checkout beside it, an archive and an installed distribution."""
    top = tmp_path_factory.mktemp("code")
    for name, text in FILES.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with zipfile.ZipFile(top / "archive.zip", "w") as archive:
        archive.writestr("archived.py", "VALUE = 1\n")
    return top


def paths(tree):
    return [
        *(str(tree / name) for name in ("project", "elsewhere", "archive.zip")),
        str(tree / "env/site-packages"),
    ]


def ran(tree, edit=""):
    """Return what a process that loads the workload says of its code."""
    file = str(tree / "project/benchmarks/workload.py")
    script = tree / "child.py"
    script.write_text(CHILD.format(paths=paths(tree), file=file, edit=edit))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module", autouse=True)
def entries(tree):
    """What a process has loaded; the one that looks finds what that one found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*paths(tree), *sys.path])
        yield code.installed(ran(tree))


def test_all_that_was_loaded_is_named_and_nothing_of_python_or_of_this_package(entries):
    ours = {name for name in entries if name.startswith(("./", "outside", "its", "archived"))}
    assert ours == {
        *(f"./benchmarks/{name}.py" for name in ("__init__", "workload", "sibling")),
        *(f"./{name}.py" for name in ("near", "late", "generated", "spaced/deep")),
        *(f"./package/{name}.py" for name in ("__init__", "parts", "lazy")),
        *(f"./package/data/{name}.py" for name in ("__init__", "table")),
        *("outside", "outside.inner", "archived", "its-name==1.0"),
    }
    others = set(entries) - ours
    assert all("==" in name for name in others), others
    assert not any(name.startswith(("json", "jax-harness", "harness")) for name in others)


def write(tree, name, text="VALUE = 2\n"):
    (tree / name).write_text(text)


def keep_times(tree, name):
    """Write as many bytes, and put the time of the last change back."""
    path = tree / name
    before = path.stat()
    path.write_text("VALUE = 3\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace(tree, name):
    """Put another file in its place, as an editor or git does."""
    path = tree / name
    path.with_suffix(".new").write_text("VALUE = 4\n")
    path.with_suffix(".new").replace(path)


def link(tree, name):
    path = tree / name
    (tree / "other.py").write_text("VALUE = 5\n")
    path.unlink()
    path.symlink_to(tree / "other.py")


def remove(tree, name):
    (tree / name).unlink()


def rezip(tree, name):
    with zipfile.ZipFile(tree / name, "w") as archive:
        archive.writestr("archived.py", "VALUE = 2\n")


def later(tree, name):
    """Edit a file of an installed distribution by hand, long after it was installed."""
    write(tree, name)
    then = time.time() + 3600
    os.utime(tree / name, (then, then))


def upgrade(tree, name):
    old = tree / name
    old.rename(old.with_name("its_name-2.0.dist-info"))
    metadata = old.with_name("its_name-2.0.dist-info") / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.0", "2.0"))


LOADED = [name for name in FILES if name.endswith(".py") and "unused" not in name]
PROJECT = [name for name in LOADED if not name.startswith("env/") and FILES[name]]
EDITS = [
    *((write, name) for name in PROJECT),
    *((keep_times, name) for name in PROJECT if FILES[name] == "VALUE = 1\n"),
    *((replace, name) for name in PROJECT),
    *((link, name) for name in ("project/near.py", "elsewhere/outside/inner.py")),
    *((remove, name) for name in ("project/near.py", "project/package/lazy.py")),
    (write, "project/package/data/__init__.py"),
    (rezip, "archive.zip"),
    (remove, "archive.zip"),
    (later, "env/site-packages/installed/module.py"),
    (later, "env/site-packages/installed/spare.py"),
    (write, f"{ABOUT}/RECORD"),
    (upgrade, ABOUT),
]


def test_there_are_forty_edits_and_none_is_missed(tree, entries, tmp_path):
    assert len(EDITS) >= 40
    project = code.project_folder(
        Source("benchmarks.workload", "f", str(tree / "project/benchmarks/workload.py"))
    )
    missed = []
    for edit, name in EDITS:
        assert code.differences(entries, project) == []
        kept = tmp_path / "kept"
        shutil.copytree(tree, kept, symlinks=True)
        edit(tree, name)
        if not code.differences(entries, project):
            missed.append((edit.__name__, name))
        shutil.rmtree(tree)
        shutil.move(kept, tree)
    assert missed == []
    # What does not change code does not matter.
    near = tree / "project/near.py"
    write(tree, "project/benchmarks/unused.py")
    (tree / "project/results").mkdir()
    near.touch()
    near.chmod(0o600)
    assert code.differences(entries, project) == []


MADE = """
Path({made!r}).write_text("VALUE = 8")
import made, types
sys.modules["typed"] = types.ModuleType("typed")
sys.modules["typed"].__file__ = "<typed>"
Path({near!r}).write_text("VALUE = 7")
"""


def test_a_file_is_its_code_that_was_written_before_it_was_loaded_and_not_afterwards(tree):
    near, made = (tree / "project" / name for name in ("near.py", "made.py"))
    text = near.read_text()
    names = ran(tree, MADE.format(made=str(made), near=str(near)))
    near.write_text(text)
    assert not any(name.startswith("typed") for name in names), "no source file"
    assert code.UNREADABLE not in names.values()
    assert code.differences({"./made.py": names["./made.py"]}, tree / "project") == []
    assert names["./near.py"] == code.EDITED
    assert [name for name, value in names.items() if value == code.EDITED] == ["./near.py"]
    assert code.differences({"./near.py": code.EDITED}, tree / "project") == ["./near.py"]


def test_a_module_that_is_found_only_where_it_ran_is_no_proof_of_an_edit(tree):
    project = tree / "project"
    names = {"./near.py": "other", "far.away": "0123", "outside.inner": "other"}
    assert code.differences(names, project) == list(names)
    assert [code.proven(name, project) for name in names] == [True, False, True]
    assert code.conflicts({"far.away": code.UNREADABLE}, {"far.away": code.UNREADABLE}) == []


def test_processes_conflict_in_what_both_loaded_and_in_versions():
    one, edited = {"./a.py": "1", "./b.py": "2", "numpy==2.1": "3"}, {"./a.py": code.EDITED}
    for a, b, expected in (
        (one, one, []),
        (one, {"./a.py": "1", "numpy==2.1": "3", "./late.py": "4"}, []),
        (one, {**one, "./b.py": "9"}, ["./b.py"]),
        (one, {"numpy==2.2": "3"}, ["numpy==2.1"]),
        (edited, edited, ["./a.py"]),
    ):
        assert code.conflicts(a, b) == expected


def test_without_a_repository_names_start_where_the_module_is_imported_from(tmp_path):
    file = tmp_path / "top" / "sub" / "module.py"
    file.parent.mkdir(parents=True)
    file.touch()
    assert code.project_folder(Source("top.sub.module", "W", str(file))) == tmp_path
    assert code.project_folder(Source("module", "W", str(file))) == file.parent
    assert code.project_folder(Source("__main__", "W")) == Path.cwd()
    (file.parent / "__init__.py").touch()
    package = Source("top.sub", "W", str(file.parent / "__init__.py"))
    assert code.project_folder(package) == tmp_path
    (tmp_path / "top" / ".git").touch()  # a worktree's is a file
    assert code.project_folder(package) == tmp_path / "top"


def test_what_a_forked_process_depends_on_is_as_it_is_when_that_begins(tmp_path, monkeypatch):
    execute = code.SourceFileLoader.exec_module
    monkeypatch.setattr(code.SourceFileLoader, "exec_module", execute)  # put back afterwards
    monkeypatch.setenv("MODE", "1")
    loaded = code.LoadedCode()
    time.sleep(0.05)
    (tmp_path / "data.txt").write_text("new")
    monkeypatch.setenv("MODE", "2")
    wanted = ("env:MODE", "data.txt", "env:NOWHERE", str(ROOT / "README.md"))
    before = loaded.entries(tmp_path, wanted)
    assert before["./data.txt"] == code.EDITED
    time.sleep(0.05)
    loaded.begin()
    now = loaded.entries(tmp_path, wanted)
    assert not code.differences({name: now[name] for name in ("./data.txt", "env:MODE")}, tmp_path)
    assert now["env:MODE"] != before["env:MODE"]
    assert now["env:NOWHERE"] == "unset"
    assert now[f"file:{ROOT}/README.md"] == before[f"file:{ROOT}/README.md"]
