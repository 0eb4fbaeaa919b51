"""`harness ir`: what is built, in which process, and what becomes of failures."""

import os

import psutil
import pytest
from rich.console import Console

from harness.cli import output
from harness.declare import discovery
from harness.ir import build
from harness.program import difference
from harness.program.facts import BUILT, Facts
from tests.ir import waves

ONE = ("--case", "size=8", "--case", "axes=(0,)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return waves.write(tmp_path_factory.mktemp("ir"), "ir_building")


@pytest.fixture
def harness(command, folder):
    return lambda *arguments: command(*arguments, "--benchmarks", folder)


def job(folder, name, *choices, stage="hlo", **options):
    workload = discovery.one_workload(name, folder)
    case = build.one_case(workload, choices, options.pop("transform", None))
    return build.job(workload, case, stage, **options)


@pytest.mark.parametrize(
    ("stage", "beginning", "part", "steps"),
    [
        ("jaxpr", "{ lambda ; a:f32[8,4].", "sin a", 3),
        ("stablehlo", "module @jit_function", "stablehlo.sine", 4),
        ("hlo", "HloModule jit_function", "ENTRY", 6),
    ],
)
def test_each_stage_is_built_so_far_and_no_further_with_places_only_on_demand(
    folder, stage, beginning, part, steps
):
    seen = []
    choices = ("size=8", "axes=(0,)")
    plain = build.build(job(folder, "Wave", *choices, stage=stage), seen.append).text
    assert plain.startswith(beginning)
    assert part in plain
    assert "waves.py" not in plain
    assert seen == ["import", "inputs", "trace", "lower", "compile", "text"][:steps]
    located = build.build(job(folder, "Wave", *choices, stage=stage, located=True)).text
    assert "waves.py" in located


def test_x64_devices_and_transforms_are_those_of_the_case(folder):
    wide = build.build(job(folder, "Wide", stage="stablehlo", transform="sharded")).text
    assert "tensor<4x4xf64>" in wide
    assert "num_partitions = 2" in wide
    pmapped = build.build(job(folder, "Wide", stage="jaxpr", transform="pmap")).text
    assert "f64[2,4,4]" in pmapped


def test_the_text_is_plain_where_no_terminal_is_and_in_colour_on_one(harness, monkeypatch):
    def shown():
        code, text, said = harness("ir", "Wave", *ONE, "--stage", "stablehlo")
        assert (code, said) == (0, "")
        return text

    plain = shown()
    assert "\x1b" not in plain
    for name, value, coloured in (("NO_COLOR", "1", False), ("TERM", "xterm-256color", True)):
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv(name, value)
        console = Console(force_terminal=True, highlight=False, color_system="256")
        monkeypatch.setattr(output, "console", console)
        assert (shown() == plain) != coloured


def test_facts_are_a_table_with_what_each_means(harness):
    code, out, _ = harness("ir", "Wave", *ONE, "--facts")
    assert code == 0
    heading, *lines = out.splitlines()
    assert heading.startswith("waves.Wave size=8, axes=(0,) · program ")
    assert [line.split()[0] for line in lines] == list(BUILT)


def test_a_fact_that_is_not_said_is_told_from_one_that_is_0():
    known = {"fusion_kinds": {"loop": 1, "custom": 2}, "loop_trips": [10, None]}
    facts = Facts(fusions=3, while_loops=2, temporary_bytes=0, **known)
    shown = {name: value for name, value, _ in difference.rows(facts)}
    assert shown["fusions"] == "3 (2 custom, 1 loop)"
    assert shown["while_loops"] == "2 (10, ? trips)"
    assert (shown["flops"], shown["temporary_bytes"]) == ("not said", "0")


def test_a_function_that_raises_is_exit_code_3_with_its_words_and_its_line(harness, tmp_path):
    output = tmp_path / "kept.txt"
    output.write_text("from before")
    code, out, said = harness("ir", "Troubled", "--case", "trouble=raise", "-o", output)
    assert (code, out) == (3, "")
    assert said.startswith("harness: waves.Troubled trouble=raise: the step 'trace' raised ")
    assert "ValueError: this workload cannot be traced (at waves.py:" in said
    assert output.read_text() == "from before"


def test_a_process_that_dies_or_hangs_is_said_and_gone(folder, fresh_processes):
    with pytest.raises(build.BuildError, match=r"(?s)'trace': killed by SIGABRT.*about to ab"):
        build.build(job(folder, "Troubled", "trouble=abort"))
    with pytest.raises(build.BuildError, match=r"the step 'trace' was not done after 0.5 s"):
        build.build(job(folder, "Troubled", "trouble=hang"))
    assert children() == []


def children():
    return [c for c in psutil.Process().children() if build.CHILD in " ".join(c.cmdline())]


def test_ctrl_c_leaves_no_process_behind(folder, fresh_processes):
    def interrupt(step):
        assert len(children()) == 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build.build(job(folder, "Troubled", "trouble=hang"), interrupt)
    assert children() == []


def test_output_goes_to_a_file(harness, tmp_path):
    output = tmp_path / "deep" / "wave.txt"
    words = ("ir", "Wave", *ONE, "--stage", "jaxpr", "-o")
    assert harness(*words, output)[:2] == (0, "")
    assert output.read_text().startswith("{ lambda ;")
    assert os.listdir(output.parent) == [output.name]
    code, _, said = harness(*words, tmp_path)
    assert code == 4
    assert "cannot be written: Is a directory" in said


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["Nope"], 2, "No workload matches 'Nope'. There are: waves.Wave"),
        (["[.]W"], 2, "'[.]W' matches 2 workloads; name one of waves.Wave, waves.Wide"),
        (["Wave", "--stage", "llvm"], 2, "There are: jaxpr, stablehlo, hlo."),
        (["Wave", *ONE, "--target", "npu"], 2, "No target is called 'npu'"),
        (["Elsewhere"], 4, "Target 'tpu': "),
        (["Wave", *ONE, "--source", "--facts"], 2, "--source adds places to a text"),
        (["Wave", *ONE, "--exit-code"], 2, "add --diff"),
        (["Wave", *ONE, "--diff", "target:npu"], 2, "No target is called 'npu'"),
        (["Wave", *ONE, "--diff", "transform:grad"], 2, "'grad'. Did you mean 'gradient'? There"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_built(harness, arguments, code, text):
    found, out, said = harness("ir", *arguments)
    assert (found, out) == (code, "")
    assert text in said
    assert "Traceback" not in said
