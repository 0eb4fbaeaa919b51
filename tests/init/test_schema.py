"""The schema of `[tool.harness]` takes what the readers of the tables take, and nothing else."""

import json
import tomllib
from contextlib import nullcontext

import pytest

from harness.errors import UsageError
from harness.init.schema import schema
from harness.stages.registry import thresholds
from harness.verdicts.error_rates import use_those_of

GOOD = "[tool.other]\nx = 1\n"


def as_an_editor_would(told):
    jsonschema = pytest.importorskip("jsonschema")  # check-jsonschema, of the extra `dev`, has it
    jsonschema.Draft7Validator.check_schema(schema())
    return jsonschema.Draft7Validator(schema()).is_valid(tomllib.loads(told))


@pytest.fixture(autouse=True)
def usual_thresholds():
    yield
    thresholds.clear()


@pytest.mark.parametrize(
    ("table", "fits"),
    [
        ("", True),
        ("[tool.harness.thresholds]\ncompile = 0.1\ndispatch = 1", True),
        ("[tool.harness.thresholds]\ncompil = 0.1", False),
        ("[tool.harness.thresholds]\ncompile = 10", False),
        ("[tool.harness.thresholds]\ncompile = true", False),
        ("[tool.harness.tresholds]\ncompile = 0.1", False),
    ],
)
def test_editors_and_readers_agree(tmp_path, table, fits):
    (tmp_path / "pyproject.toml").write_text(GOOD + table)
    assert as_an_editor_would(GOOD + table) == fits
    with nullcontext() if fits else pytest.raises(UsageError):
        use_those_of(tmp_path)


def test_a_command_prints_it(command):
    code, out, _ = command("init", "--schema")
    assert (code, json.loads(out)) == (0, schema())
