"""The pprof file, decoded by jaxlib's reader of `profile.proto`, has a profile's seconds."""

import gzip
import json

import pytest
from click.testing import CliRunner
from jax._src.lib import _jax

from harness.cli.profile import app
from harness.profiles.pprof import pprof_of
from tests.profiles import synthetic
from tests.profiles.made import Made


def decoded(packed):
    """Return sample types, samples as (frames, values, labels), and the rest of a profile."""
    made = json.loads(_jax.pprof_profile_to_json(gzip.decompress(packed)))
    texts = made["stringTable"]
    functions = {one["id"]: one for one in made["function"]}

    def text(one, field):
        return texts[int(one.get(field, 0))]

    def frame(number):
        [line] = locations[number]["line"]
        function = functions[line["functionId"]]
        return text(function, "name"), text(function, "filename"), int(line.get("line", 0))

    locations = {one["id"]: one for one in made["location"]}
    kinds = [(text(one, "type"), text(one, "unit")) for one in made["sampleType"]]
    samples = [
        (
            [frame(number) for number in one.get("locationId", ())],
            [int(value) for value in one["value"]],
            {text(label, "key"): text(label, "str") for label in one.get("label", ())},
        )
        for one in made["sample"]
    ]
    return kinds, samples, made


def test_seconds_of_each_stage_are_those_of_the_builds():
    profile = synthetic.profile()
    kinds, samples, made = decoded(pprof_of(profile))
    names = [name for name, _ in kinds]
    assert names == ["trace", "lower", "compile", "load", "write", "builds"]
    assert [unit for _, unit in kinds] == ["nanoseconds"] * 5 + ["count"]
    builds = [
        one for process in profile.processes for one in (*process.builds, *process.unfinished)
    ]
    for at, name in enumerate(names[:-1]):
        assert sum(values[at] for _, values, _ in samples) == sum(
            built.stage_ns(name) for built in builds
        )
    assert sum(values[-1] for _, values, _ in samples) == len(builds)
    assert made["stringTable"][int(made["defaultSampleType"])] == "compile"


def test_a_sample_has_the_function_the_line_that_asked_for_it_and_labels():
    made = Made().build("train_step", line=12, called=88, inner=("layer",)).profile()
    _, samples, _ = decoded(pprof_of(made))
    folder = made.processes[0].started.cwd
    asked = ("main", f"{folder}/train.py", 88)
    step, layer = (("train_step", f"{folder}/train.py", 12), ("layer", f"{folder}/train.py", 1))
    stacks = {tuple(frames): values for frames, values, _ in samples}
    assert stacks == {
        (step, asked): [9_000_000, 10_000_000, 10_000_000, 0, 0, 1],
        (layer, step, asked): [1_000_000, 0, 0, 0, 0, 0],
    }
    assert all(labels["process"] == "train.py[1]" for _, _, labels in samples)


def test_the_command_writes_it(tmp_path):
    Made().build("train_step").write(tmp_path / "p")
    out = tmp_path / "builds.pb.gz"
    done = CliRunner().invoke(app, ["report", str(tmp_path / "p"), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert len(decoded(out.read_bytes())[1]) == 1


PROGRAM = """
import jax
import jax.numpy as jnp

@jax.jit
def waves(x):
    for _ in range(30):
        x = jnp.sin(x) * 2
    return x

waves(jnp.ones(8))
"""


@pytest.mark.nightly
def test_stacks_are_those_of_jaxs_own_profile_of_equations(tmp_path, command, monkeypatch):
    script, folder = tmp_path / "train.py", tmp_path / "p"
    script.write_text(PROGRAM)
    monkeypatch.setenv("JAX_DUMP_IR_TO", str(tmp_path / "jax"))
    monkeypatch.setenv("JAX_DUMP_IR_MODES", "eqn_count_pprof")
    assert command("profile", "-o", folder, "--", script)[0] == 0
    assert command("profile", "report", folder, "-o", folder / "b.pb.gz")[0] == 0
    _, samples, _ = decoded((folder / "b.pb.gz").read_bytes())
    [(waves, *asked)] = [frames for frames, _, _ in samples if frames[0][0] == "waves"]
    assert (waves[1:], [frame[1:] for frame in asked]) == ((str(script), 5), [(str(script), 11)])
    [file] = (tmp_path / "jax").glob("*_waves*.eqn_count_pprof")
    _, theirs, _ = decoded(file.read_bytes())
    counted = {frames[0][2]: (values, frames) for frames, values, _ in theirs}
    values, (line, *around) = counted[8]
    assert (values, line[1:]) == ([30], (str(script), 8))
    # Where JAX's begin at the function that is traced, ours go on from it.
    assert [frame[1:] for frame in around] in ([], [frame[1:] for frame in asked])
