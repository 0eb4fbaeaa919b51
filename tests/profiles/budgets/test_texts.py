from __future__ import annotations

from harness.output.profile_budgets import exceeded_text
from harness.profiles.budgets.use import Exceeded, judge
from harness.profiles.causes.cause import Cause, Remedy
from harness.profiles.functions import by_function
from tests.profiles.made import Made

FIRST = Cause("first")


def static(before, after):
    return Cause("static value", "steps", before, after, remedy=Remedy("few values", "steps"))


def told(made, before=True, **limits):
    profile = made.profile()
    uses = judge(limits, by_function(profile.builds), "it", profile.cause_of)
    over = tuple(use for use in uses if use.over)
    return exceeded_text(Exceeded(over, profile.cause_of, before))


def test_function_call_site_argument_cause_and_remedy_each_build_once():
    made = Made().build("loss", line=12, cause=FIRST)
    for before in "12":
        made.build("loss", line=12, cause=static(before, str(int(before) + 1)))
    assert told(made, max_compiles=1, max_lowers=0).split("\n") == [
        "3 compiles, and it allows 1 (max_compiles = 1).",
        "  `loss` (train.py:12) was compiled 3 times",
        "    2 × called at train.py:88 in main: `steps` is static and was 1, now 2: JAX builds for "
        "every value",
        "      Let `steps` take few values. (JH023)",
        "    called at train.py:88 in main: its first build",
        "3 lowerings, and it allows 0 (max_lowers = 0).",
    ]


def test_what_the_persistent_cache_had_counts_and_is_said():
    made = Made().build("f", cause=FIRST, outcome="hit").build("f", cause=FIRST)
    assert "twice (1 of them loaded from the persistent cache)" in told(made, max_compiles=1)


def test_a_first_build_may_have_had_another_before_the_budget():
    made = Made().build("f", cause=FIRST)
    said = "open the budget before the warm-up to see what changed"
    assert said in told(made, before=False, max_compiles=0)
    assert told(made, before=True, max_compiles=0).endswith("in main: its first build")


def test_many_functions_and_causes_are_cut_short():
    made = Made()
    for number in range(9):
        made.build(f"f{number}", line=number, cause=FIRST)
    for number in range(7):
        made.build("f0", line=0, cause=Cause("shape", f"x{number}", "a", "b"))
    text = told(made, max_compiles=0)
    assert "  … and 4 more functions." in text
    assert "    … and 4 more causes" in text


def test_unexplained_builds_have_a_limit():
    made = Made().build("f", cause=FIRST).build("f", cause=Cause("unexplained"))
    text = told(made, max_unexplained=0)
    assert text.startswith("1 unexplained build, and it allows 0")
    assert text.endswith("in main: nothing that is recorded explains it")
    assert told(made, max_unexplained=1) == ""
