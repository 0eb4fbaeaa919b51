"""What a stage or a scenario lacks is told when it is made, with its name and the field."""

import re
from pathlib import Path

import pytest

from harness.stages.registry import ALONE_STAGES, CASE_STAGES, PROCESS_STAGES, STAGES
from harness.stages.scenarios.registry import SCENARIOS, stages_of
from harness.stages.scenarios.scenario import Scenario
from harness.stages.stage import Stage

METHOD = (Path(__file__).parents[2] / "docs" / "method.md").read_text(encoding="utf-8")
WHOLE = {
    "name": "serialize",
    "title": "The program becomes bytes.",
    "step": "compile",
    "take": print,
}


def by_stage(text):
    """Return what a sentence says of stages: the share by the name."""
    parts = re.findall(r"((?:`\w+`(?:, | and )?)+)[^`;]*?\s(\d+)\s%", text)
    return {n: int(share) / 100 for names, share in parts for n in re.findall(r"`(\w+)`", names)}


def test_the_page_says_from_which_effect_on_a_stage_has_changed():
    told = by_stage(re.search(r"smallest effect that counts: (.*?) Where", METHOD, re.DOTALL)[1])
    assert len(told) > 8
    assert {name: told.get(name, 0.1) for name in STAGES} == {
        name: stage.effect for name, stage in STAGES.items()
    }


@pytest.mark.parametrize("field", WHOLE)
def test_a_stage_that_lacks_something_fails_where_it_is_made_and_says_what(field):
    with pytest.raises(TypeError, match=field):
        Stage(**{name: value for name, value in WHOLE.items() if name != field})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("step", "thinking"), ("effect", 0), ("effect", 5)),
        *(("colour", "red"), ("statistic", ""), ("clock", "sun")),
    ],
)
def test_a_stage_with_what_cannot_be_is_named_with_the_field(field, value):
    with pytest.raises(TypeError, match=f"stage 'serialize': {field} is {value!r}"):
        Stage(**{**WHOLE, field: value})


def test_a_scenario_with_a_directory_says_what_proves_its_outcomes():
    with pytest.raises(TypeError, match="scenario 'odd': outcomes is"):
        Scenario(name="odd", description="a test", steps=("build",), directory="empty")


def test_stages_stand_in_the_order_of_a_program_and_are_calibrated_by_stages_that_exist():
    assert CASE_STAGES == (
        "trace",
        "lower",
        "compile",
        "dispatch",
        "execute",
        "compute",
        "in_flight",
    )
    assert PROCESS_STAGES == ("import", "backend", "first_lower", "first_compile", "ready")
    assert {stage.calibrated_by for stage in STAGES.values()} <= set(STAGES)


def test_a_scenario_has_the_stages_of_its_steps():
    assert {name: stages_of(name) for name in SCENARIOS} == {
        "off": CASE_STAGES,
        "cold": ("trace", "lower", "compile"),
        "warm": ("trace", "lower", "load"),
        "default": ("trace", "lower", "compile", "load"),
        "exported": ("trace", "lower", "compile"),
        "executable": ("load",),
    }
    assert ALONE_STAGES == ("first_call", "start")
