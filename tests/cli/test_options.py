"""Options that commands share: results, filters and output mean the same everywhere."""

import json

import pytest
from click.testing import CliRunner

from harness import cli
from harness.errors import UsageError
from tests.frame import trees

READERS = ("show", "history", "baselines", "export")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    stages = {"trace": [1e6], "compile": [9e6]}
    trees.write(
        folder,
        *(
            trees.record(process, stages, workload=workload, axes={"Size": size})
            for workload in ("nn.Gelu", "fft.Fft")
            for size in (8, 16)
            for process in range(3)
        ),
    )
    return folder


def run(*arguments, **variables):
    return CliRunner().invoke(cli.app, [*map(str, arguments)], env=variables)


def rows(*arguments, **variables):
    done = run("show", *arguments, "--format", "json", **variables)
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def test_results_are_named_by_option_or_variable(tree):
    everything = rows("-r", tree)
    assert len(everything) == 8
    assert rows("--results", tree) == rows(HARNESS_RESULTS=str(tree)) == everything
    assert rows("-r", tree, HARNESS_RESULTS="nowhere") == everything


@pytest.mark.parametrize("command", READERS)
def test_every_command_that_reads_takes_results_and_filters(command):
    shown = run(command, "--help-all").output
    for option in ("--results", "--select", "--case", "--stage", "--target", "--scenario"):
        assert option in shown


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        (["-s", "gelu"], 4),
        (["-s", "gelu", "-s", "FFT"], 8),
        (["--case", "size=8"], 4),
        (["--case", "SIZE=8", "--case", "size=16"], 8),
        (["--case", "transform=Forward", "--stage", "Compile"], 4),
        (["--target", "CPU", "--scenario", "OFF", "--stage", "trace"], 4),
        (["--scenario", "OFF,off"], 8),
    ],
)
def test_filters_leave_what_is_asked_for_whatever_the_case(tree, filters, count):
    assert len(rows("-r", tree, *filters)) == count


@pytest.mark.parametrize(
    ("filters", "text"),
    [
        (["-s", "gelo"], "No workload matches 'gelo'. Did you mean 'nn.Gelu'? There are: fft.Fft"),
        (["-s", "("], "'(' is no regular expression"),
        (["--stage", "compiel"], "No stage is called 'compiel'. Did you mean 'compile'? There"),
        (["--target", "cpi"], "No target is called 'cpi'. Did you mean 'cpu'? There are: cpu."),
        (["--scenario", "hot"], "No scenario is called 'hot'. There are: off."),
        (["--scenario", "off,hot"], "No scenario is called 'hot'. There are: off."),
        (["--case", "sice=8"], "No axis is called 'sice'. Did you mean 'Size'?"),
        (["--case", "size=9"], "No row has size=9."),
        (["--case", "size"], "expected AXIS=VALUE"),
    ],
)
def test_a_filter_that_leaves_nothing_says_what_there_is(tree, filters, text):
    done = run("show", "-r", tree, *filters)
    assert isinstance(done.exception, UsageError)
    assert text in str(done.exception)


def test_the_same_rows_are_written_in_every_format(tree, tmp_path):
    for name in ("csv", "json", "markdown", "table"):
        file = tmp_path / "deep" / name
        printed = run("show", "-r", tree, "--format", name.upper()).stdout
        assert run("show", "-r", tree, "--format", name, "-o", file).exit_code == 0
        assert file.read_text().rstrip() == printed.rstrip() or name == "table"
        assert "nn.Gelu" in printed
