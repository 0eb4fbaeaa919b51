from __future__ import annotations

import csv
import io

import jax
import numpy as np
import pytest
from click.testing import CliRunner

import harness
from harness.cli import app
from harness.errors import HarnessError
from harness.jaxhooks.events import Program, Run
from harness.output import profile_diff
from harness.output.profile_diff import SECONDS, document, warnings
from harness.profiles.causes.cause import Cause, Remedy
from harness.profiles.compare import compare, frame
from tests.profiles.made import Made

STATIC_IS = "`steps` is static and was 1, now 2: JAX builds for every value"
STATIC = Cause("static value", "steps", "1", "2", remedy=Remedy("dynamic", "steps"))
FIRST = Cause("first")


def answer(a, b):
    return profile_diff.answer(compare(a.profile(), b.profile()))


def many(count, **kinds):
    made = Made().build("loss", line=12, cause=FIRST, **kinds)
    for _ in range(count - 1):
        made.build("loss", line=12, cause=STATIC, **kinds)
    return made


def test_what_matters_most_comes_first():
    a = Made().build("small").build("large")
    b = Made().build("small").build("small", ms=1).build("large").build("large", ms=500)
    assert [text.split("`")[1] for text in answer(a, b)] == ["large", "small"]


def test_seconds_alone_are_no_change():
    found = compare(many(3).profile(), many(3, ms=900).profile())
    assert found.changed == []
    assert profile_diff.answer(found) == [
        "No count changed: both build 1 function in 3 builds, for the same causes."
    ]
    assert answer(Made(), Made()) == ["Neither builds anything."]


def test_what_only_the_persistent_cache_changed_is_said_once():
    a = Made().build("f").build("g").build("h")
    b = Made().build("f", outcome="hit").build("g", outcome="hit").build("h")
    changed = compare(a.profile(), b.profile())
    assert profile_diff.answer(changed) == [
        "B loads 2 of 3 programs from the persistent cache, A none; nothing else changed."
    ]
    assert [c.b.counts["loads"] for c in changed.changes] == [1, 1, 0]


def test_a_load_where_the_other_compiles_beside_other_changes():
    a = Made().build("f").build("g")
    b = Made().build("f", outcome="hit").build("g").build("g")
    assert "B loads `f` (train.py:1) once from the persistent cache where A compiles." in answer(
        a, b
    )


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (many(1), many(17), f"B compiles `loss` (train.py:12) 17 times, A once: {STATIC_IS}."),
        (many(17), many(1), f"A compiles `loss` (train.py:12) 17 times, B once: {STATIC_IS}."),
        (
            Made().build("f"),
            Made().build("f").build("f"),
            "B compiles `f` (train.py:1) twice, A once: nothing that is recorded explains it.",
        ),
        (Made(), Made().build("g"), "B builds `g` (train.py:1), which A does not: 1 compile, "),
        (Made().build("g"), Made(), "A builds `g` (train.py:1), which B does not: 1 compile, "),
        (
            Made().build("f"),
            Made().build("f", inner=["g", "g"]),
            "B builds `g` (train.py:1), which A does not: 2 traces, ",
        ),
        (
            Made().build("f"),
            Made().build("f").build("f", stages=("trace",)),
            "B traces `f` (train.py:1) twice, A once",
        ),
        (
            Made().build("f", cause=FIRST),
            Made().build("f", cause=STATIC),
            "`f` (train.py:1) is built as often, but for another cause: `steps` is static and",
        ),
        (
            Made().build("f", jit={"donate_argnums": "(0,)"}),
            Made().build("f", jit={}),
            "`f` (train.py:1) is built as often, with other options "
            "(donate_argnums: (0,) -> not given).",
        ),
        (
            Made().build("f", program=Program(code_bytes=1000)),
            Made().build("f", program=Program(code_bytes=2500)),
            "`f` (train.py:1) is built as often, and has 2,500 bytes of code in B, 1,000 in A.",
        ),
        (
            Made().build("f", program=Program(temp_bytes=10)),
            Made().build("f", program=Program(temp_bytes=0)),
            "`f` (train.py:1) is built as often, and has 0 temporary bytes in B, 10 in A.",
        ),
        (
            Made(),
            Made().build("add", origin="jax", file="/x/site-packages/jax/_src/a.py"),
            "B compiles 1 one-operation program of JAX's own, A 0.",
        ),
    ],
)
def test_every_kind_of_change_has_its_sentence(a, b, text):
    for made in (a, b):
        made.causes = made.causes or {("made", 99): FIRST}
    assert answer(a, b)[0].startswith(text)


def test_what_was_recorded_with_is_compared():
    a = Made().build("f", context={"jax_enable_x64": "False", "jax_gone": "1"})
    b = Made().build("f", context={"jax_enable_x64": "True", "XLA_FLAGS": "--xla_a=1"})
    facts = compare(a.profile(), b.profile()).facts
    assert {name: both for name, both in facts.items() if len(set(both)) == 2} == {
        "jax_enable_x64": ("False", "True"),
        "XLA_FLAGS": ("not set", "--xla_a=1"),
    }


def test_what_makes_two_profiles_hard_to_compare_is_said():
    a = Made(ended=False).build("f")
    b = Made(host="other", cores=64, argv=("serve.py",)).build("f")
    a.run = Run(("python", "-u", "train.py", "--x"), 0, 1, 0, 1)
    b.run = Run(("python", "-m", "serve"), 0, 1, 0, 1)
    texts = list(warnings(compare(a.profile(), b.profile())))
    assert len(texts) == 3
    assert texts[0].startswith("A is not whole: 1 log cut off")
    assert texts[1] == "Two programs: A is train.py, B -m serve."
    assert (
        texts[2]
        == "Two machines: A box (2 cores), B other (64 cores). Do not compare their seconds."
    )


def test_every_format_holds_the_same():
    difference = compare(many(1).profile(), many(17).profile())
    (function,) = document(difference)["functions"]
    assert (function["a"]["compiles"], function["b"]["compiles"]) == (1, 17)
    assert function["b"]["causes"][1] == {
        "kind": "static value",
        "argument": "steps",
        "builds": 16,
        "example": {
            "kind": "static value",
            "argument": "steps",
            "before": "1",
            "after": "2",
            "sentence": f"{STATIC_IS}.",
            "remedy": "Make `steps` a dynamic argument, or let it take few values.",
            "remedy_id": "JH020",
        },
    }
    (row,) = csv.DictReader(io.StringIO(frame(difference).to_csv(index=False)))
    assert (row["function"], row["a_compiles"], row["b_compiles"]) == ("loss", "1", "17")
    assert row["b_causes"] == "1 first; 16 static value `steps`"
    empty = frame(compare(Made().profile(), Made().profile()))
    assert len(empty) == 0
    assert list(row) == list(empty.columns)


def test_two_real_profiles():
    def program(values):
        step = jax.jit(lambda x: x * 3)
        with harness.profile() as profile:
            for value in values:
                step(value)
        return profile

    difference = compare(program([np.ones(3)] * 3), program(map(np.ones, (3, 4, 5))))
    (change,) = difference.changed
    for count in ("compiles", "traces"):
        assert (change.a.counts[count], change.b.counts[count]) == (1, 3)
    assert profile_diff.answer(difference)[0].startswith("B compiles `<lambda>` (")
    assert " 3 times, A once" in profile_diff.answer(difference)[0]


def run(*words):
    return CliRunner().invoke(app, ["profile", "diff", *map(str, words)])


@pytest.fixture
def folders(tmp_path):
    return many(1).write(tmp_path / "a"), many(17).write(tmp_path / "b")


def test_the_command_prints_the_answer_first(folders):
    result = run(*folders)
    assert result.exit_code == 0
    first, *rest = result.output.splitlines()
    assert first.startswith("B compiles `loss` (train.py:12) 17 times, A once")
    assert "1 -> 17" in "\n".join(rest)
    assert SECONDS in rest


@pytest.mark.parametrize(
    ("format_", "holds"),
    [
        ("table", "B compiles `loss`"),
        ("markdown", "| 1 -&gt; 17 |"),
        ("json", '"compiles": 17,'),
        ("csv", "loss"),
    ],
)
def test_the_command_writes_every_format_into_a_file(tmp_path, folders, format_, holds):
    out = tmp_path / "new" / "out"
    result = run(*folders, "--format", format_, "-o", out, "--all")
    assert (result.exit_code, result.output) == (0, "")
    assert holds in out.read_text()
    assert out.read_text().startswith("**B compiles") == (format_ == "markdown")


def test_the_command_refuses_what_is_no_profile(tmp_path, folders):
    (tmp_path / "empty").mkdir()
    for wrong in ("empty", "none"):
        result = run(folders[0], tmp_path / wrong)
        assert isinstance(result.exception, HarnessError)
        assert wrong in str(result.exception)
    assert run(*folders, "--format", "xml").exit_code == 2
