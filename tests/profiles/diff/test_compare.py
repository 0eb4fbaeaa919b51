from __future__ import annotations

import csv
import io
import json

import jax
import numpy as np
import pytest
from click.testing import CliRunner

import harness
from harness.cli import app
from harness.errors import HarnessError
from harness.profiles.causes.cause import Cause
from harness.profiles.diff.compare import compare
from harness.profiles.diff.difference import SECONDS, document, frame
from harness.watch.events import Program
from tests.profiles.made import Made, run_of

STATIC = Cause(
    "static value", "steps", "1", "2", "`steps` is static and was 1, now 2", "Make it dynamic."
)
FIRST = Cause("first")


def answer(a, b):
    return compare(a.profile(), b.profile()).answer


def many(count, **kinds):
    made = Made().build("loss", line=12, cause=FIRST, **kinds)
    for _ in range(count - 1):
        made.build("loss", line=12, cause=STATIC, **kinds)
    return made


def test_the_answer_names_function_counts_and_cause():
    assert answer(many(1), many(17)) == [
        "B compiles `loss` (train.py:12) 17 times, A once: `steps` is static and was 1, now 2."
    ]
    assert answer(many(17), many(1)) == [
        "A compiles `loss` (train.py:12) 17 times, B once: `steps` is static and was 1, now 2."
    ]


def test_without_a_known_cause_none_is_claimed():
    one, two = Made().build("f"), Made().build("f").build("f")
    one.causes = two.causes = {("made", 99): FIRST}
    (text,) = answer(one, two)
    assert text in (
        "B compiles `f` (train.py:1) twice, A once.",
        "B compiles `f` (train.py:1) twice, A once: unexplained.",
    )


def test_what_matters_most_comes_first():
    a = Made().build("small").build("large")
    b = Made().build("small").build("small", ms=1).build("large").build("large", ms=500)
    assert [text.split("`")[1] for text in answer(a, b)] == ["large", "small"]


def test_nothing_changed():
    found = compare(many(3).profile(), many(3).profile())
    assert found.changed == []
    assert found.answer == [
        "No count changed: both build 1 function in 3 builds, for the same causes."
    ]
    assert answer(Made(), Made()) == ["Neither builds anything."]


def test_seconds_alone_are_no_change():
    assert compare(many(3).profile(), many(3, ms=900).profile()).changed == []


def test_what_only_the_persistent_cache_changed_is_said_once():
    a = Made().build("f").build("g").build("h")
    b = Made().build("f", outcome="hit").build("g", outcome="hit").build("h")
    assert answer(a, b)[0].startswith("B loads `f`") is False
    changed = compare(a.profile(), b.profile())
    assert changed.answer == [
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
    a.run, b.run = run_of("python", "-u", "train.py", "--x"), run_of("python", "-m", "serve")
    warnings = compare(a.profile(), b.profile()).warnings
    assert len(warnings) == 3
    assert warnings[0].startswith("A is not whole: 1 log cut off")
    assert warnings[1] == "Two programs: A is train.py, B -m serve."
    assert warnings[2] == "Two machines: A box (2 cores), B other (64 cores). Seconds say little."


def test_every_format_holds_the_same():
    difference = compare(many(1).profile(), many(17).profile())
    found = document(difference)
    (function,) = found["functions"]
    assert (function["a"]["compiles"], function["b"]["compiles"]) == (1, 17)
    assert function["b"]["causes"][1] == {
        "kind": "static value",
        "argument": "steps",
        "builds": 16,
        "example": STATIC._asdict(),
    }
    (row,) = csv.DictReader(io.StringIO(frame(difference).to_csv(index=False)))
    assert (row["function"], row["a_compiles"], row["b_compiles"]) == ("loss", "1", "17")
    assert row["b_causes"] == "1 first; 16 static value `steps`"


def test_an_empty_difference_has_columns():
    found = frame(compare(Made().profile(), Made().profile()))
    assert len(found) == 0
    assert {"function", "a_compiles", "b_trace_s"} <= set(found.columns)


def test_two_real_profiles():
    def program(values):
        step = jax.jit(lambda x: x * 3)
        with harness.profile() as profile:
            for value in values:
                step(value)
        return profile

    a = program([np.ones(3, np.float32)] * 3)
    b = program([np.ones(size, np.float32) for size in (3, 4, 5)])
    difference = compare(a, b)
    (change,) = difference.changed
    assert (change.a.counts["compiles"], change.b.counts["compiles"]) == (1, 3)
    assert (change.a.counts["traces"], change.b.counts["traces"]) == (1, 3)
    assert difference.answer[0].startswith("B compiles `<lambda>` (")
    assert " 3 times, A once" in difference.answer[0]


def test_the_command_prints_the_answer_first(tmp_path):
    a, b = many(1).write(tmp_path / "a"), many(17).write(tmp_path / "b")
    result = CliRunner().invoke(app, ["profile", "diff", str(a), str(b)])
    assert result.exit_code == 0
    first, *rest = result.output.splitlines()
    assert first.startswith("B compiles `loss` (train.py:12) 17 times, A once")
    assert "1 -> 17" in "\n".join(rest)
    assert SECONDS in rest


@pytest.mark.parametrize("format_", ["table", "markdown", "json", "csv"])
def test_the_command_writes_every_format_into_a_file(tmp_path, format_):
    a, b = many(1).write(tmp_path / "a"), many(2).write(tmp_path / "b")
    out = tmp_path / "new" / "out"
    options = ["--format", format_, "-o", str(out), "--all"]
    result = CliRunner().invoke(app, ["profile", "diff", str(a), str(b), *options])
    assert (result.exit_code, result.output) == (0, "")
    text = out.read_text()
    assert "loss" in text
    if format_ == "markdown":
        assert text.startswith("**B compiles")
        assert "| 1 -&gt; 2 |" in text
    if format_ == "json":
        assert json.loads(text)["functions"][0]["b"]["compiles"] == 2


def test_the_command_refuses_what_is_no_profile(tmp_path):
    a = many(1).write(tmp_path / "a")
    (tmp_path / "empty").mkdir()
    for wrong in ("empty", "none"):
        result = CliRunner().invoke(app, ["profile", "diff", str(a), str(tmp_path / wrong)])
        assert isinstance(result.exception, HarnessError)
        assert wrong in str(result.exception)
    result = CliRunner().invoke(app, ["profile", "diff", str(a), str(a), "--format", "xml"])
    assert result.exit_code == 2
