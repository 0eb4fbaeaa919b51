"""What `harness init` writes, keeps and refuses."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests import forks
from tests.init.package import FEW, PREDICT, Package

WORKFLOWS = ".github/workflows"
WRITTEN = {
    "asv.conf.json",
    "benchmarks/__init__.py",
    "benchmarks/predict.py",
    f"{WORKFLOWS}/benchmarks.yml",
    f"{WORKFLOWS}/benchmarks-nightly.yml",
    ".gitignore",
    ".gitattributes",
}


def tool(name):
    found = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.defpath]))
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def configuration(package):
    """Return what asv reads, as it reads it."""
    from asv.config import Config

    return vars(Config.load(str(package.folder / "asv.conf.json")))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A package of a src layout, set up for its function."""
    package = Package(tmp_path_factory.mktemp("measured"))
    package.said = package.init(PREDICT)
    return package


def test_what_is_written_is_told_with_three_next_commands(measured):
    lines = measured.said.splitlines()
    assert {line.split()[1] for line in lines if line.startswith("wrote")} == WRITTEN
    commands = lines[lines.index("Next:") + 1 :]
    assert [Path(line.split()[0]).name for line in commands] == ["harness", "git", "asv", "asv"]
    assert "mypackage.models:predict traces; sweep: size = 64, 256." in lines


def test_a_second_run_changes_nothing(measured):
    before = measured.files()
    said = measured.init(PREDICT)
    assert measured.files() == before
    lines = said.splitlines()
    assert {line.split()[1] for line in lines if line.startswith("unchanged")} == WRITTEN


def test_the_workload_names_the_function_and_sweeps_the_batch(measured):
    text = measured.text("benchmarks/predict.py")
    assert "function = staticmethod(mypackage.models.predict)" in text
    assert 'sweep = {"size": [64, 256]}' in text
    assert 'spec((784, 256), "float32")' in text
    assert 'spec((256,), "float32")' in text
    assert 'spec((size, 784), "float32")' in text


def test_asv_gets_a_matrix_of_this_jax_and_the_harness(measured):
    conf = configuration(measured)
    assert conf["matrix"]["req"] == {
        "jax": [version("jax")],
        "jax-harness": [""],
        "pip+asv_runner": [version("asv_runner")],
    }
    assert conf["pythons"] == [".".join(map(str, sys.version_info[:2]))]
    assert (conf["project"], conf["repo"], conf["branches"]) == ("mypackage", ".", ["HEAD"])
    assert conf["launch_method"] == "forkserver"
    # asv's default would install the newest JAX over the one of the matrix.
    assert "--no-deps" in conf["install_command"][-1]


def test_asv_makes_an_environment_of_the_matrix(measured):
    script = (
        "from asv import config, environment\n"
        "from asv.plugin_manager import plugin_manager\n"
        "conf = config.Config.load()\n"
        "for plugin in conf.plugins: plugin_manager.import_plugin(plugin)\n"
        "print([e.name for e in environment.get_environments(conf, [])])"
    )
    said = measured.run(f'"{sys.executable}" -c "{script}"')
    python = ".".join(map(str, sys.version_info[:2]))
    if "virtualenv-py" not in said:
        pytest.skip(f"asv finds no python{python} on PATH: {said}")
    assert f"virtualenv-py{python}-jax{version('jax')}-jax-harness" in said


@pytest.mark.parametrize(
    "command",
    [
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows"],
        ["zizmor", "-q", "--offline"],
    ],
)
def test_the_workflows_are_valid_and_safe(measured, command):
    program, *options = command
    files = sorted((measured.folder / WORKFLOWS).iterdir())
    assert [file.name for file in files] == ["benchmarks-nightly.yml", "benchmarks.yml"]
    done = subprocess.run([tool(program), *options, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_folder_whose_name_would_steer_a_terminal_is_shown_by_its_escapes(tmp_path):
    (tmp_path / "\x1b[2Jmine").mkdir()
    done = forks.harness("init", "\x1b[2Jmine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\\x1b[2Jmine/asv.conf.json" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


FIXTURES = """
import jax.numpy as jnp
import numpy as np

def make_batch():
    params = {"w": jnp.ones((8, 4)), "b": jnp.zeros(4)}
    return params, jnp.ones((2, 8))

def scale():
    return jnp.ones(3)

def counted():
    return {"w": jnp.ones((8, 4)), "b": np.arange(4)}, jnp.ones((2, 8))

def loss(params, batch):
    return jnp.sum(batch @ params["w"] + params["b"])
"""


@pytest.mark.nightly
def test_a_function_of_the_users_makes_the_arguments(tmp_path):
    package = Package(tmp_path, models=FIXTURES)
    package.write(package.folder / "src/mypackage/fixtures.py", FIXTURES)
    said = package.init("--function mypackage.models:loss --inputs mypackage.fixtures:make_batch")
    assert "mypackage.models:loss traces.\n" in said
    text = package.text("benchmarks/loss.py")
    assert "import mypackage.fixtures\nimport mypackage.models\n" in text
    assert "        return mypackage.fixtures.make_batch()\n" in text
    assert "1 measured" in package.harness("run --effort quick loss.Loss", **FEW)


def test_a_function_that_hides_the_module_of_its_name_is_found(tmp_path):
    package = Package(tmp_path)
    folder = package.folder / "src/mypackage/core"
    package.write(folder / "__init__.py", "from mypackage.core.solve import solve\n")
    package.write(folder / "solve.py", "def solve(x):\n    return 2 * x\n")
    package.init('--function mypackage.core.solve:solve --arg "float32[8]"')
    assert "from mypackage.core.solve import solve\n" in package.text("benchmarks/solve.py")
    assert "solve.Solve" in package.harness("list")


EQUINOX = """
import equinox as eqx
import jax
import jax.numpy as jnp

def make():
    return eqx.nn.Lambda(jax.nn.relu), jnp.ones(3)

@eqx.filter_jit
def apply(layer, x):
    return layer(x)
"""


def test_an_object_of_another_library_takes_what_it_takes_for_its_user(tmp_path):
    package = Package(tmp_path, models=EQUINOX)
    said = package.init("--function mypackage.models:apply --inputs mypackage.models:make")
    assert "mypackage.models:apply traces.\n" in said


def test_without_a_function_an_example_is_written_that_runs(tmp_path):
    package = Package(tmp_path, name="my-package", layout="flat", git=False)
    said = package.init()
    (commit,) = [line for line in said.splitlines() if line.startswith("  git init")]
    package.run(commit)
    names = (name.replace("predict", "example") for name in WRITTEN)
    assert {*package.run("git ls-files").split()} == {*names}
    text = package.text("benchmarks/example.py")
    assert "function = staticmethod(my_package.mymodule.f)" in text
    assert "2 measured" in package.harness("run --effort quick", **FEW)
    assert configuration(package)["project"] == "my-package"


def test_scripts_in_a_folder_of_benchmarks_are_left_alone(tmp_path):
    package = Package(tmp_path)
    package.write(package.folder / "benchmarks" / "theirs.py", "raise SystemExit(3)\n")
    said = package.init(PREDICT)
    assert "  harness run --effort quick --benchmarks workloads    #" in said
    assert [file.name for file in (package.folder / "benchmarks").iterdir()] == ["theirs.py"]
    assert configuration(package)["benchmark_dir"] == "workloads"
    said = package.harness("list --benchmarks workloads")
    assert "Predict" in said
    assert "theirs" not in said


def test_files_that_are_there_are_kept_and_what_they_lack_is_told(tmp_path):
    package = Package(tmp_path)
    conf = '{"version": 1, "project": "p", "repo": ".", "benchmark_dir": "perf"} // mine\n'
    package.write(package.folder / "asv.conf.json", conf)
    package.write(package.folder / "perf" / "__init__.py", "# mine\n")
    package.write(package.folder / ".gitignore", "build/")
    said = package.init(PREDICT)
    assert "  harness run --effort quick --benchmarks perf    #" in said
    assert "harness run --effort quick --benchmarks perf ||" in package.text(
        f"{WORKFLOWS}/benchmarks.yml"
    )
    assert package.text("asv.conf.json") == conf
    assert "asv.conf.json: is there, left as it is; it needs these lines:" in said
    assert '"plugins": [".harness.asv.environment"],' in said
    assert package.text("perf/__init__.py") == "# mine\n"
    assert "suite.install()" in said
    assert "predict" in package.text("perf/predict.py")
    assert package.text(".gitignore") == "build/\n.asv/\n/report.html\n"


def test_force_replaces_files_and_keeps_what_git_ignores(tmp_path):
    package = Package(tmp_path)
    package.write(package.folder / "asv.conf.json", "no JSON at all")
    package.write(package.folder / ".gitignore", "build/\n.asv\n*.html\n")
    package.write(package.folder / "benchmarks" / "mine.py", "from harness import Workload\n")
    said = package.init(code=2)
    assert "asv cannot read" in said
    assert "--force" in said
    package.init("--force")
    assert configuration(package)["benchmark_dir"] == "benchmarks"
    assert package.text(".gitignore") == "build/\n.asv\n*.html\n"
    assert not (package.folder / "benchmarks" / "example.py").exists(), "there is a module"


def test_functions_of_one_name_get_modules_of_their_own_and_64_bits_where_they_ask(tmp_path):
    package = Package(tmp_path)
    package.write(package.folder / "src/mypackage/others.py", "def total(x):\n    return x\n")
    package.write(package.folder / "pyproject.toml", '[build-system]\nrequires = ["setuptools"]\n')
    package.init('--function mypackage.models:total --arg "int32[8]"')
    package.init('--function mypackage.others:total --arg "float64[8]"')
    assert "(mypackage.models.total)" in package.text("benchmarks/total.py")
    assert "(mypackage.others.total)" in package.text("benchmarks/others_total.py")
    assert "x64 = True" in package.text("benchmarks/others_total.py")
    assert "x64" not in package.text("benchmarks/total.py")
    # Whatever says how it is built is built.
    assert "pip wheel" in package.text("asv.conf.json")
    text = package.text(f"{WORKFLOWS}/benchmarks.yml")
    assert 'pip install . "$HARNESS"' in text
    assert 'HARNESS: "jax-harness"' in text
    assert "ASV_PYTHONPATH" not in text


def test_projects_in_subfolders_name_the_repository_and_have_their_own_workflows(tmp_path):
    package = Package(tmp_path, at="packages/mine")
    said = package.init(f"packages/mine {PREDICT}", cwd=package.top)
    assert "cd packages/mine && harness run" in said
    conf = configuration(package)
    assert (conf["repo"], conf["repo_subdir"]) == ("../..", "packages/mine")
    workflow = (package.top / WORKFLOWS / "benchmarks-packages-mine.yml").read_text()
    assert 'name: "Benchmarks in packages/mine"' in workflow
    assert 'working-directory: "packages/mine"' in workflow
    assert "Predict" in package.harness("list")
    package.write(package.top / "other" / "pyproject.toml", '[project]\nname = "other"\n')
    assert "kept" not in package.init("other", cwd=package.top)
    assert {file.name for file in (package.top / WORKFLOWS).iterdir()} == {
        *("benchmarks-packages-mine.yml", "benchmarks-packages-mine-nightly.yml"),
        *("benchmarks-other.yml", "benchmarks-other-nightly.yml"),
    }


@pytest.mark.parametrize(
    ("results", "file"),
    [("my results", ".gitattributes"), ("../results", "../.gitattributes")],
)
def test_results_elsewhere_are_named_and_merged_and_nothing_else_is(tmp_path, results, file):
    package = Package(tmp_path, at="mine")
    conf = {"version": 1, "project": "p", "repo": "..", "results_dir": results}
    package.write(package.folder / "asv.conf.json", json.dumps(conf))
    said = package.init()
    assert f"--results {shlex.quote(results)}" in said
    workflow = (package.top / WORKFLOWS / "benchmarks-mine-nightly.yml").read_text()
    assert f"cp -R {shlex.quote(results)}/." in workflow
    assert package.text(file).count("\n") == 5
    attributes = package.run(
        f"git check-attr merge {shlex.quote(results)}/m/records/a.jsonl a.jsonl package.json"
    )
    assert [line.rpartition(": ")[2] for line in attributes.splitlines()] == [
        *("union", "unspecified", "unspecified")
    ]


BUILD = f'"{sys.executable}" -c "import setuptools; setuptools.setup()" --quiet build'


@pytest.mark.parametrize(
    ("files", "named"),
    [
        (["mypackage/__init__.py", "mypackage/inner/__init__.py"], 'include = ["mypackage*"]'),
        (["mypackage.py"], 'py-modules = ["mypackage"]'),
    ],
)
def test_results_do_not_keep_setuptools_from_finding_the_package(tmp_path, files, named):
    """In a flat layout it takes every folder for a package; what is printed ends that."""
    package = Package(tmp_path)
    shutil.rmtree(package.folder / "src")
    for file in files:
        package.write(package.folder / file, "")
    said = package.init()
    assert "setuptools finds packages by itself here" in said
    package.write(package.folder / "results" / "machine.json", "{}")
    built = package.folder / "build" / "lib"
    package.run(f"{BUILD} || true")
    assert not (built / files[0]).exists()
    there = [line.strip() for line in said.splitlines() if line.startswith("    ")]
    assert there[1] == named
    with (package.folder / "pyproject.toml").open("a") as project:
        project.write("\n".join(["", *there, ""]))
    package.run(BUILD)
    assert all((built / file).is_file() for file in files)
    assert "setuptools looks" not in package.init()


def test_a_module_that_starts_jax_is_not_forked(tmp_path):
    models = "import jax.numpy as jnp\n\nW = jnp.ones(4)\n\n\ndef scaled(x):\n    return x * W\n"
    package = Package(tmp_path, models=models)
    said = package.init('--function mypackage.models:scaled --arg "float32[8,4]"')
    assert "Importing mypackage.models starts JAX" in said
    assert configuration(package)["launch_method"] == "spawn"
    assert 'sweep = {"size": [8, 32]}' in package.text("benchmarks/scaled.py")


LOSS = "--function mypackage.fixtures:loss"
WRONG = {
    f"{LOSS} --inputs mypackage.models:nothing": "has no attribute 'nothing'. Expected a function",
    f"{LOSS} --inputs mypackage.fixtures:loss": "missing 2 required positional arguments",
    f"{LOSS} --inputs mypackage.fixtures:scale": "traced with what mypackage.fixtures:scale retur",
    f"{LOSS} --inputs mypackage.fixtures:counted": (
        "fixtures:counted: the input at [0]['b'] has the dtype int64, which JAX would turn into int"
    ),
    f"{LOSS} --inputs mypackage": "--inputs 'mypackage': expected package.module:function",
    f'{LOSS} --inputs mypackage.fixtures:scale --arg "float32[3]"': "by one of two",
    "--function mypackage.models.predict": "expected package.module:function",
    "--function mypackage.models:predict": "needs its arguments, by one of two",
    '--function mypackage.models:total --arg "float32(8)"': "--arg 'float32(8)': expected",
    '--function mypackage.models:total --arg "float32[8;4]"': "--arg 'float32[8;4]': expected",
    '--function mypackage.models:total --arg "float33[8]"': "float33",
    '--arg "float32[8]"': "--arg and --inputs need the function",
    '--function a:b --function c:d --arg "float32[8]"': "--function is given more than once",
    '--function mypackage.nope:f --arg "float32[8]"': "No module named 'mypackage.nope'",
    '--function mypackage.models:nope --arg "float32[8]"': "mypackage.models has no nope",
    '--function mypackage.models:NUMBER --arg "float32[8]"': "a function; it is of type int",
    '--function mypackage.models:predict --arg "float32[8]"': "missing 2 required positional",
    '--function mypackage.models:repeated --arg "float32[8]" --arg "int32[]"': "(at models.py:18)",
    '--function mypackage.models:times_of --arg "float32[8]" --arg "int32[]"': (
        "jax.jit takes its argument 2 as static"
    ),
    "nowhere": "nowhere is no folder",
    "pyproject.toml": "pyproject.toml is no folder",
}


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    package = Package(tmp_path_factory.mktemp("untouched"))
    package.write(package.folder / "src/mypackage/fixtures.py", FIXTURES)
    return package


def test_a_dry_run_shows_the_files_and_writes_none(untouched):
    before = untouched.files()
    said = untouched.init(f"--dry-run {PREDICT}")
    assert untouched.files() == before
    assert said.count("would write") == len(WRITTEN)
    assert "function = staticmethod(mypackage.models.predict)" in said
    # What is static need not be given if it has a default.
    given = '--dry-run --function mypackage.models:times_of --arg "float32[8]"'
    assert "mypackage.models:times_of traces" in untouched.init(given)


def test_the_size_that_most_arguments_share_is_swept(untouched):
    given = "--dry-run --function mypackage.models:line " + 3 * '--arg "float32[{}]" '
    assert "sweep: size = 64, 256." in untouched.init(given.format(2, 64, 64))


@pytest.mark.parametrize("arguments", WRONG)
def test_wrong_usage_says_what_and_writes_nothing(untouched, arguments):
    before = untouched.files()
    said = untouched.init(arguments, code=2)
    assert WRONG[arguments] in said
    assert "Traceback" not in said
    assert untouched.files() == before


def test_a_package_that_is_not_installed_is_told_from_one_that_is(untouched):
    said = untouched.init(PREDICT, code=2, ASV_PYTHONPATH="")
    assert f"-m pip install -e {untouched.folder}" in said
    assert "PYTHONPATH is not used here" in said  # the test sets it
    assert "ASV_PYTHONPATH" not in untouched.init(PREDICT, code=2, ASV_PYTHONPATH="", PYTHONPATH="")


@pytest.mark.nightly
def test_what_pip_cannot_install_is_found_by_what_asv_is_told(tmp_path):
    package = Package(tmp_path)
    package.init(PREDICT, PYTHONPATH="")
    assert "Predict" in package.harness("list", PYTHONPATH="")
    said = package.harness("run --effort quick --case size=64", PYTHONPATH="", **FEW)
    assert "1 measured, 0 measured before and reused, 0 failed" in said


def test_a_place_that_cannot_be_written_leaves_everything_as_it_was(tmp_path):
    package = Package(tmp_path)
    package.write(package.folder / "benchmarks", "a file where the folder should be")
    before = package.files()
    said = package.init(code=2)
    assert "is a file, not a folder. Nothing has been written." in said
    assert package.files() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(tmp_path):
    package = Package(tmp_path)
    package.folder.chmod(0o555)
    said = package.init(code=2)
    package.folder.chmod(0o755)
    assert "is read-only for you. Nothing has been written." in said


@pytest.mark.parametrize(
    ("variable", "inside", "prefix"),
    [
        ("PIXI_PROJECT_MANIFEST", False, "pixi run "),
        ("UV_RUN_RECURSION_DEPTH", True, "uv run "),
        ("UV_RUN_RECURSION_DEPTH", False, "SCRIPTS/"),
        ("PATH", False, "SCRIPTS/"),
    ],
)
def test_the_next_command_works_from_a_shell_without_the_environment(
    monkeypatch, tmp_path, variable, inside, prefix
):
    from harness.init.next_steps import prefix as prefix_of

    for name in ("PIXI_PROJECT_MANIFEST", "UV_RUN_RECURSION_DEPTH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    scripts = Path(sys.executable).parent
    folder = scripts.parent if inside else tmp_path
    assert prefix_of(folder) == prefix.replace("SCRIPTS", str(scripts))
