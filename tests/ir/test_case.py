"""Which case `harness ir` means by what is typed; nothing is built."""

import re
import shlex
from pathlib import Path

import pytest

from harness.cli import ir as cli_ir
from harness.declare import discovery
from harness.errors import UsageError
from harness.ir import build as cases
from harness.ir import comparison
from tests.ir import waves
from tests.sweeps import SUITES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wave(tmp_path_factory):
    folder = waves.write(tmp_path_factory.mktemp("choosing"), "ir_choosing")
    return discovery.one_workload("Wave", folder)


def test_several_cases_are_listed_and_each_line_selects_just_its_own(wave):
    with pytest.raises(UsageError) as caught:
        cases.one_case(wave)
    heading, *lines = str(caught.value).splitlines()
    assert heading == "waves.Wave has 4 such cases; add one of"
    found = [cases.one_case(wave, shlex.split(line)[1::2]) for line in lines]
    assert [case.axes for case in found] == [
        {"size": size, "axes": axes} for size in (8, 16) for axes in ((0,), (0, 1))
    ]


def test_only_axes_that_are_still_open_are_listed_and_a_long_list_is_cut(wave, monkeypatch):
    with pytest.raises(UsageError, match=r"--case 'axes=\(0,\)'\n  --case 'axes=\(0, 1\)'$"):
        cases.one_case(wave, ["size=8"])
    monkeypatch.setattr(cases, "LISTED", 3)
    with pytest.raises(UsageError, match=r"size=16 --case 'axes=\(0,\)'\n  ... and 1 more$"):
        cases.one_case(wave)


ONE = ["size=8", "axes=(0,)"]


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
    case = cases.one_case(wave, ONE + choices, **options)
    assert (case.transform, case.target) == (transform, target)
    assert case.axes == {"size": 8, "axes": (0,)}


@pytest.mark.parametrize(
    ("choices", "options", "text"),
    [
        (["size=9"], {}, r"No case has size=9\. The axes and their values: size: 16, 32, 8;"),
        (["length=9"], {}, r"No case has length=9\. The axes"),
        (["size"], {}, r"expected AXIS=VALUE"),
        (["size=32", "axes=(0,)"], {}, r"skips size=32, axes=\(0,\): thirty-two is too many"),
        ([*ONE, "transform=grad"], {}, r"No transform is called 'grad'"),
        ([*ONE, "transform=vmap"], {"transform": "gradient"}, r"no case with .* transform=vmap"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(wave, choices, options, text):
    with pytest.raises(UsageError, match=text):
        cases.one_case(wave, choices, **options)


def test_a_changed_case_keeps_what_is_not_changed_and_takes_tuples(wave):
    case = cases.one_case(wave, ONE, transform="gradient")
    changed = cases.changed(wave, case, "axes=(0, 1),size=16")
    assert changed.axes == {"size": 16, "axes": (0, 1)}
    assert changed.transform == "gradient"
    with pytest.raises(UsageError, match=r"No case has size=9"):
        cases.changed(wave, case, "size=9")


@pytest.mark.parametrize("what", ["yesterday", "day:before", "commit:", "records"])
def test_an_unknown_comparison_lists_the_known_ones(what):
    with pytest.raises(UsageError, match=rf"--diff '{what}': expected one of\n  case:AXIS=VALUE"):
        comparison.parse(what)


def test_a_file_that_cannot_be_imported_is_named_where_its_workload_is_missed():
    with pytest.raises(UsageError, match=r"No workload matches 'Gone'.*wrong.py: importing it"):
        discovery.one_workload("Gone", SUITES / "broken")


def test_every_example_of_the_help_means_one_case_of_the_benchmarks():
    examples = re.findall(r"^  harness ir (.*?)(?:  .*)?$", cli_ir.ir.help, re.M)
    assert len(examples) > 10
    for example in examples:
        pattern, *words = shlex.split(example)
        options = dict(zip(words[::2], words[1::2], strict=False))
        workload = discovery.one_workload(pattern, ROOT / "benchmarks")
        case = cases.one_case(
            workload, [options["--case"]] if "--case" in options else [], options.get("--transform")
        )
        kind, rest = comparison.parse(options.get("--diff", "commit:HEAD"))
        if kind == "case":
            cases.changed(workload, case, rest)
