"""The tables of stages and scenarios, and what the docs say of them."""

import re
from pathlib import Path

from harness.stages.registry import ALONE_STAGES, CASE_STAGES, PROCESS_STAGES, STAGES
from harness.stages.scenarios.registry import SCENARIOS, stages_of

METHOD = (Path(__file__).parents[2] / "docs" / "method.md").read_text(encoding="utf-8")


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
