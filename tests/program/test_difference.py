import re

import jax
import jax.numpy as jnp
import pytest

from harness.program.difference import facts_difference, text_difference
from harness.program.facts import BUILT, Facts, facts_of
from tests.program.programs import stages


def softmax(x):
    return jax.nn.softmax(jnp.tanh(x @ x.T))


def said(a, b):
    return facts_difference(Facts(**a), Facts(**b))


def test_a_change_of_kind_is_named_in_place_of_the_total():
    before = {"fusions": 2, "fusion_kinds": {"loop": 1, "custom": 1}}
    after = {"fusions": 3, "fusion_kinds": {"loop": 3}}
    assert said(before, after) == "-1 fusion (custom), +2 fusions (loop)"


def test_kinds_may_change_though_their_total_does_not():
    before = {"custom_calls": 1, "custom_call_targets": {"__cublas$gemm": 1}}
    after = {"custom_calls": 1, "custom_call_targets": {"__cublas$lt$matmul": 1}}
    expected = "-1 custom call (__cublas$gemm), +1 custom call (__cublas$lt$matmul)"
    assert said(before, after) == expected


@pytest.mark.parametrize(
    ("name", "before", "after", "text"),
    [
        ("temporary_bytes", 0, 2_300_000, "+2.3 MB temporary"),
        ("temporary_bytes", 2_300_000, 0, "-2.3 MB temporary"),
        ("peak_bytes", 100, 116, "+16 B peak"),
        ("peak_bytes", 0, 999_600, "+1 MB peak"),
        ("launches", 1, 2, "+1 launch"),
        ("launches", 12_001, 1, "-12000 launches"),
        ("transcendentals", 0, 2e6, "+2 M transcendentals"),
        ("flops", 1e9, 3.5e9, "+2.5 G flops"),
        ("flops", None, 3.5e9, "flops: unknown before, now 3.5 G"),
        ("argument_bytes", 8, None, "arguments: now unknown, before 8 B"),
        ("hlo_instructions", None, 7, "HLO instructions: unknown before, now 7"),
    ],
)
def test_a_change_is_said_with_its_sign_and_unit(name, before, after, text):
    assert said({name: before}, {name: after}) == text


def test_loops_that_run_longer_are_a_change():
    before = {"while_loops": 2, "loop_trips": [16, None]}
    after = {"while_loops": 2, "loop_trips": [32, None]}
    assert said(before, after) == "loop trips 16, ? → 32, ?"
    assert said(after, {"while_loops": 0}) == "-2 while loops, loop trips 32, ? → none"


def test_every_fact_can_be_said():
    for name in BUILT:
        assert re.fullmatch(r"\+2 .+", said({name: 1}, {name: 3})), name


def test_kinds_of_a_side_that_is_not_known_are_not_compared():
    after = {"fusions": 1, "fusion_kinds": {"loop": 1}}
    assert said({}, after) == "fusions: unknown before, now 1"


def test_one_more_sort_is_found_in_a_real_program():
    one = facts_of(*stages(softmax))
    assert facts_difference(one, one) == ""
    line = facts_difference(one, facts_of(*stages(lambda x: jnp.sort(softmax(x)))))
    assert re.search(r"\+\d+ launch", line)
    assert "StableHLO operations" in line
    assert "stablehlo.sort" not in line


def changed(one, other):
    """Return the lines that a text loses, and those that another has in their place."""
    lines = text_difference(one, other).splitlines()[2:]
    return [[line[1:].strip() for line in lines if line[0] == sign] for sign in "-+"]


def renumber(hlo):
    """Give every name of an HLO text another number, as XLA does when it names one thing more."""
    return re.sub(r"(?<=[A-Za-z_])\.(\d+)\b", lambda m: f".{int(m[1]) + 7}", hlo)


def test_hlo_that_is_numbered_otherwise_does_not_differ():
    hlo = stages(softmax)[2].as_text()
    assert renumber(hlo) != hlo
    assert text_difference(hlo, renumber(hlo)) == ""


def test_a_change_in_hlo_is_shown_alone():
    one = stages(lambda x: jnp.sin(x) * 2.0)[2].as_text()
    other = renumber(stages(lambda x: jnp.sin(x) * 3.0)[2].as_text())
    [before], [after] = changed(one, other)
    assert "constant(2)" in before
    assert "constant(3)" in after


def test_operands_that_change_places_are_a_difference():
    text = "HloModule f\n\nENTRY %main (x.1: f32[], y.2: f32[]) -> f32[] {\n  {0}\n}\n"
    before = text.replace("{0}", "ROOT %s.3 = f32[] subtract(%x.1, %y.2)")
    assert text_difference(before, before.replace("%s.3", "%s.9")) == ""
    assert text_difference(before, text.replace("{0}", "ROOT %s.3 = f32[] subtract(%y.2, %x.1)"))


CALLS = """HloModule f

%of.{0} (a.{1}: f32[]) -> f32[] {{
  %a.{1} = f32[] parameter(0)
  ROOT %r.{2} = f32[] add(%a.{1}, %a.{1})
}}

%of.{3} (a.{4}: f32[]) -> f32[] {{
  %a.{4} = f32[] parameter(0)
  ROOT %r.{5} = f32[] negate(%a.{4})
}}

ENTRY %main.{6} (x.{7}: f32[]) -> f32[] {{
  %x.{7} = f32[] parameter(0)
  %r.{8} = f32[] call(%x.{7}), to_apply=%of.{3}
  ROOT %r.{9} = f32[] call(%r.{8}), to_apply=%of.{0}
}}
"""


def test_computations_stay_apart_and_their_numbers_are_no_difference():
    one, other = CALLS.format(*range(10, 20)), CALLS.format(*range(30, 40))
    assert text_difference(one, other) == ""
    [before], [after] = changed(one, other.replace("call(%r.38), to_apply=%of.30", "tanh(%r.38)"))
    assert (before, after) == (
        "ROOT %r.19 = f32[] call(%r.18), to_apply=%of.10",
        "ROOT %r.19 = f32[] tanh(%r.18)",
    )


@pytest.mark.parametrize("stage", [1, 2], ids=["stablehlo", "hlo"])
def test_one_operation_more_does_not_rename_those_that_follow(stage):
    def steps(x, more):
        for step in range(12):
            x = x * 1.5 if step == 1 and more else x
            y = jnp.sin(x) * 2.0 + x
            x = jnp.tanh(y) - x
            x = x / x.sum()
        return x

    one, other = (stages(lambda x, m=more: steps(x, m))[stage].as_text() for more in (0, 1))
    before, after = changed(one, other)
    assert 0 < len(before) < len(after) < 10
    assert any("1.5" in line for line in after)


def test_one_operation_more_in_stablehlo_leaves_the_others_as_they_are():
    one = stages(lambda x: jnp.tanh(x) @ jnp.cos(x))[1].as_text(debug_info=True)
    other = stages(lambda x: jnp.tanh(jnp.sin(x)) @ jnp.cos(x))[1].as_text()
    sine = "%sine = stablehlo.sine %arg0 : tensor<64x64xf32>"
    before = sine.replace("sine", "tanh")
    assert changed(one, other) == [[before], [sine, before.replace("%arg0", "%sine")]]


def test_results_of_loops_are_renamed_with_the_loop():
    def loop(x):
        return jax.lax.fori_loop(0, 3, lambda _, s: jnp.sin(s) @ s, jnp.cos(x))

    one = stages(lambda x: loop(x))[1].as_text()
    other = stages(lambda x: loop(jnp.tan(x)))[1].as_text()
    assert "#" in one  # results of an operation with several
    assert changed(one, other)[0] == ["%cosine = stablehlo.cosine %arg0 : tensor<64x64xf32>"]


def test_jaxprs_differ_by_their_equations():
    one, other = (str(stages(f)[0].jaxpr) for f in (jnp.sin, jnp.cos))
    assert text_difference(one, one) == ""
    assert "-  { lambda" not in text_difference(one, other)
    assert "+" in text_difference(one, other)
