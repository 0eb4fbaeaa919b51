"""What profiles, budgets and differences print, against files that people have read.

After a change of words that is meant, write them again and read the difference:

    TESTS_GOLDEN=write python -m pytest tests/profiles/test_golden.py
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.jaxhooks import events
from harness.output.profile import summary
from harness.output.profile_budgets import exceeded_text
from harness.output.profile_causes import CLAUSES, sentence
from harness.output.profile_diff import answer
from harness.output.profile_remedies import TEXTS, remedy_text
from harness.profiles.budgets.use import Exceeded, judge
from harness.profiles.causes.cause import Cause, Remedy, ToJit, several
from harness.profiles.compare import compare
from harness.profiles.functions import by_function
from tests.profiles.made import CWD, Made

GOLDEN = Path(__file__).with_name("golden")
WRITE = os.environ.get("TESTS_GOLDEN") == "write"

CHANGED = Cause("pytree", "opt", "init", "init", "object", ("object", "object"))
SAMPLE = Cause(
    "",
    "x",
    "4",
    "8",
    type="main.Config",
    field="rate",
    place="/p/train.py:7",
    library="optax",
    sizes=((4, 2), (8, 2)),
)
REMEDY = Remedy(
    "",
    "x",
    "rate",
    type="Config",
    library="optax",
    place="train.py:88",
    functions=(ToJit("loss"), ToJit("step", "train.py", nested=True)),
    counts=(5, 3),
)


def made():
    """Return a profile with findings of several kinds."""
    small = {"origin": "jax", "file": "/x/site-packages/jax/_src/lax.py"}
    one = Made().build("relax", line=12, ms=50)
    pad = Remedy("pad", "x", left=several([("dtype", "y")]))
    for shape in ("2", "3", "5"):
        cause = Cause("shape", "x", f"({shape},)", "(9,)", remedy=pad, sizes=((int(shape),), (9,)))
        one.build("predict", line=20, called=40, cause=cause)
    for n in "12":
        once = Remedy("jit once and pass", "step")
        one.build(
            "step",
            line=30,
            called=50,
            cause=Cause(
                "new function object", "step", n, "9", "changed", ("object", "object"), remedy=once
            ),
        )
        weak = Remedy("always an array", "state['time']", "float32", alike=several(["state['a']"]))
        ways = ("python", "fixed")
        cause = Cause("weak type", "state['time']", "float", "float32", ways=ways, remedy=weak)
        one.build("advance", line=60, called=61, cause=cause)
    for name in ("add", "mul", "sub", "exp", "log"):
        one.build(name, ms=1, called=70, **small)
    return one


def traced_twice():
    """Return a profile of a first build with a loop whose carry is promoted."""
    one = Made().build("settle", stages=("trace", "compile"), ms=200, cause=Cause("first"))
    loop = events.Promoted("scan", f"{CWD}/train.py", 14, "int32", "float32", 2, 90_000_000)
    one.lines[-1] = replace(one.lines[-1], promoted=(loop,))
    return one.profile()


def outputs():
    """Return each output by its name."""
    profile = made().profile()
    (built, *_) = profile.builds
    limits = {"max_compiles": 3, "max_eager": 0}
    uses = judge(
        limits, by_function(profile.builds), "harness.budget at train.py:3", profile.cause_of
    )
    causes = [
        (f"{kind}, {form}" if form else kind, SAMPLE._replace(kind=kind, form=form))
        for kind, form in CLAUSES
    ]
    alike = several(["y", "z", "a", "b"])
    also = several([Cause("dtype", "y", "float32", "int8"), CHANGED])
    causes.append(("and more", SAMPLE._replace(kind="shape", alike=alike, also=also)))
    return {
        "answer": "\n".join(
            "\n".join([f"{width} columns:", *summary(profile, width, None), ""])
            for width in (80, 120)
        ),
        "loop": "\n".join(summary(traced_twice(), 120, None)),
        "causes": "\n".join(f"{name}\n  {sentence(cause, built)}" for name, cause in causes),
        "remedies": "\n".join(
            f"{remedy.id} {kind}\n  {remedy_text(remedy, 'python train.py')}"
            for kind in TEXTS
            if (remedy := REMEDY._replace(kind=kind))
        ),
        "budget": exceeded_text(Exceeded(tuple(uses), profile.cause_of)),
        "diff": "\n".join(answer(compare(Made().build("relax", line=12).profile(), profile))),
    }


@pytest.mark.parametrize("name", ["answer", "loop", "causes", "remedies", "budget", "diff"])
def test_the_words_are_as_they_were(name):
    file, text = GOLDEN / f"{name}.txt", outputs()[name] + "\n"
    if WRITE:
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), "see the top of this file"
