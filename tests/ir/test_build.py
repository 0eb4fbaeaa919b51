"""`harness ir`: what is built, in which process, and what becomes of failures."""

import os
import re
import shlex
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from harness.cli import ir as cli_ir
from harness.cli import output
from harness.errors import UsageError
from harness.ir import build, comparison
from harness.program import difference
from harness.program.facts import BUILT, Facts
from harness.workload import discovery
from tests.ir import waves
from tests.sweeps import SUITES

ROOT = Path(__file__).parents[2]
FIRST = ("size=8", "axes=(0,)")
ONE = ("--case", "size=8", "--case", "axes=(0,)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return waves.write(tmp_path_factory.mktemp("ir"), "ir_building")


@pytest.fixture
def harness(command, folder):
    return lambda name, *arguments: command(name, "--benchmarks", folder, *arguments)


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
    plain = build.build(job(folder, "Wave", *FIRST, stage=stage), seen.append).text
    assert plain.startswith(beginning)
    assert part in plain
    assert "waves.py" not in plain
    assert seen == ["import", "inputs", "trace", "lower", "compile", "text"][:steps]
    located = build.build(job(folder, "Wave", *FIRST, stage=stage, located=True)).text
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
        (["Gone", "--benchmarks", SUITES / "broken"], 2, "wrong.py: importing it raised"),
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


# --- which case is meant --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wave(folder):
    return discovery.one_workload("Wave", folder)


def test_several_cases_are_listed_and_each_line_selects_just_its_own(wave):
    with pytest.raises(UsageError) as caught:
        build.one_case(wave)
    heading, *lines = str(caught.value).splitlines()
    assert heading == "waves.Wave has 4 such cases; add one of"
    found = [build.one_case(wave, shlex.split(line)[1::2]) for line in lines]
    assert [case.axes for case in found] == [
        {"size": size, "axes": axes} for size in (8, 16) for axes in ((0,), (0, 1))
    ]


def test_only_axes_that_are_still_open_are_listed_and_a_long_list_is_cut(wave, monkeypatch):
    with pytest.raises(UsageError, match=r"--case 'axes=\(0,\)'\n  --case 'axes=\(0, 1\)'$"):
        build.one_case(wave, ["size=8"])
    monkeypatch.setattr(build, "LISTED", 3)
    with pytest.raises(UsageError, match=r"size=16 --case 'axes=\(0,\)'\n  ... and 1 more$"):
        build.one_case(wave)


@pytest.mark.parametrize(
    ("choices", "options", "transform", "target"),
    [
        ([], {}, "forward", "cpu"),
        ([], {"transform": "gradient"}, "gradient", "cpu"),
        (["transform=vmap"], {}, "vmap", "cpu"),
        (["target=gpu"], {}, "forward", "gpu"),
        ([], {"target": "tpu"}, "forward", "tpu"),
    ],
)
def test_any_transform_and_target_may_be_asked_for(wave, choices, options, transform, target):
    case = build.one_case(wave, [*FIRST, *choices], **options)
    assert (case.transform, case.target) == (transform, target)
    assert case.axes == {"size": 8, "axes": (0,)}


@pytest.mark.parametrize(
    ("choices", "options", "text"),
    [
        (["size=9"], {}, r"No case has size=9\. The axes and their values: size: 8, 16, 32;"),
        (["length=9"], {}, r"No axis is called 'length'\. There are: size, axes, transform"),
        (["size"], {}, r"expected AXIS=VALUE"),
        (["size=32", "axes=(0,)"], {}, r"skips size=32, axes=\(0,\): thirty-two is too many"),
        ([*FIRST, "transform=grad"], {}, r"No transform is called 'grad'"),
        ([*FIRST, "transform=vmap"], {"transform": "gradient"}, r"no case with .* transform=vmap"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(wave, choices, options, text):
    with pytest.raises(UsageError, match=text):
        build.one_case(wave, choices, **options)


def test_a_changed_case_keeps_what_is_not_changed_and_takes_tuples(wave):
    case = build.one_case(wave, FIRST, transform="gradient")
    changed = build.changed(wave, case, "axes=(0, 1),size=16")
    assert changed.axes == {"size": 16, "axes": (0, 1)}
    assert changed.transform == "gradient"
    with pytest.raises(UsageError, match=r"No case has size=9"):
        build.changed(wave, case, "size=9")


@pytest.mark.parametrize("what", ["yesterday", "day:before", "commit:", "records"])
def test_an_unknown_comparison_lists_the_known_ones(what):
    with pytest.raises(UsageError, match=rf"--diff '{what}': expected one of\n  case:AXIS=VALUE"):
        comparison.parse(what)


def test_every_example_of_the_help_means_one_case_of_the_benchmarks():
    examples = re.findall(r"^  harness ir (.*?)(?:  .*)?$", cli_ir.ir.help, re.M)
    assert len(examples) >= 9
    for example in examples:
        pattern, *words = shlex.split(example)
        options = dict(zip(words[::2], words[1::2], strict=False))
        workload = discovery.one_workload(pattern, ROOT / "benchmarks")
        case = build.one_case(
            workload, [options["--case"]] if "--case" in options else [], options.get("--transform")
        )
        kind, rest = comparison.parse(options.get("--diff", "commit:HEAD"))
        if kind == "case":
            build.changed(workload, case, rest)
