"""Which slow-downs are put in to measure the power of this machine's verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import UsageError
from harness.stages.registry import CASE_STAGES

Effects = dict[str, float]
"""Stage to slow-down: 0.2 for a fifth more time."""

DEFAULT: Effects = {"trace": 0.5, "lower": 0.5, "compile": 0.2, "execute": 0.2}

THOROUGH: Effects = {"compile": 0.1, "execute": 0.1}
"""What `thorough` must find besides."""


def injections(given: Sequence[str], effort: str) -> list[Effects]:
    """Return the slow-downs of each arm to measure: `given` as STAGE=EFFECT, or the usual ones.

    Stages do not disturb each other, so one arm has one slow-down of every stage.

    Raises:
        UsageError: one of `given` is no STAGE=EFFECT.
    """
    if not given:
        return [DEFAULT, THOROUGH] if effort == "thorough" else [DEFAULT]
    arms: list[Effects] = []
    for text in given:
        stage, effect = _read(text)
        arm = next((arm for arm in arms if stage not in arm), None)
        if arm is None:
            arms.append(arm := {})
        arm[stage] = effect
    return arms


def _read(text: str) -> tuple[str, float]:
    stage, _, value = text.partition("=")
    try:
        effect = float(value)
    except ValueError:
        effect = 0.0
    if stage not in CASE_STAGES or not 0 < effect <= 100:
        raise UsageError(
            f"--effect {text!r}: expected STAGE=EFFECT, such as compile=0.2 for a fifth more time; "
            f"the stages are {', '.join(CASE_STAGES)}."
        )
    return stage, effect
