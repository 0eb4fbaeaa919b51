"""Optimised HLO is read from its text, and what it sets going is counted."""

from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from harness.program import facts, hlo
from harness.program.hlo import launches

TEXT = """\
HloModule jit_f, is_scheduled=true, frontend_attributes={a="{"}

FileNames
1 "x.py"

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[]{:T(128)}, f32[8]{0:T(256)S(1)}, /*index=2*/f32[]) parameter(0)
  ROOT %t.1 = (s32[]{:T(128)}, f32[8]{0:T(256)}) tuple(%p), metadata={op_name="body=%evil" a=1}
}

ENTRY %main.3 (x.1: f32[8]) -> f32[8] {
  %x.1 = f32[8]{0} parameter(0), metadata={op_name="a, calls=%nothing kind=kInput"}
  %c = f32[2,2]{1,0} constant({ { 1, 2 }, { 3, 4 } })
  %while.1 = (s32[], f32[8]) while(%x.1), condition=%cond, body=%body, \
metadata={op_name="while \\" } } kind=kLoop"}, backend_config={"known_trip_count":{"n":"7"}}
  %my.call = f32[8]{0} custom-call(%x.1), custom_call_target="say \\"hello\\" add(", api_version=1
  %b = (f32[8]) conditional(%x.1), branch_computations={%one, %two.5}
  ROOT %f = f32[8]{0:T(8,128)(2,1)} fusion(%x.1), kind=kOutput, calls=%fused.2
}, execution_thread="host"
"""


@pytest.fixture(scope="module")
def read():
    return hlo.from_text(TEXT)


def test_names_opcodes_and_the_entry_are_read_from_text(read):
    assert read.entries == ["main.3"]
    assert [(i.name, i.opcode) for i in read.computations["main.3"]] == [
        ("x.1", "parameter"),
        ("c", "constant"),
        ("while.1", "while"),
        ("my.call", "custom-call"),
        ("b", "conditional"),
        ("f", "fusion"),
    ]
    assert [i.opcode for i in read.computations["body"]] == ["parameter", "tuple"]


def test_callees_and_trip_counts_are_read_and_what_users_wrote_is_not(read):
    by_name = {i.name: i for i in read.instructions()}
    assert by_name["while.1"].callees == [("condition", "cond"), ("body", "body")]
    assert by_name["while.1"].trips == 7
    assert by_name["b"].callees == [
        ("branch_computations", "one"),
        ("branch_computations", "two.5"),
    ]
    assert by_name["f"].callees == [("calls", "fused.2")]
    assert by_name["t.1"].callees == by_name["x.1"].callees == []
    assert by_name["f"].trips is None
    assert by_name["c"].rest == ""  # it may be megabytes


def test_fusions_and_custom_calls_are_counted_by_kind(read):
    counts = facts.read("hlo", read)
    assert counts["hlo_instructions"] == 8
    assert counts["fusion_kinds"] == {"output": 1}
    assert counts["custom_call_targets"] == {'say \\"hello\\" add(': 1}
    assert counts["loop_trips"] == [7]


def test_a_text_that_is_no_hlo_holds_nothing():
    program = hlo.from_text("no HLO {\nat all\n")
    assert list(program.instructions()) == []
    assert program.entries == []


def test_asynchronous_pairs_count_once():
    text = """ENTRY %main (x: f32[8]) -> f32[8] {
  %s = (f32[8], f32[16], u32[]) all-gather-start(%x), channel_id=1, dimensions={0}
  %d = f32[16] all-gather-done(%s)
  %r = ((f32[16]), f32[8]) reduce-scatter-start(%d), to_apply=%add
  %e = f32[8] reduce-scatter-done(%r)
  %q = ((f32[8]), f32[8], u32[]) fusion-start(%e), kind=kLoop, calls=%fused
  ROOT %g = f32[8] fusion-done(%q)
}
"""
    counts = facts.read("hlo", hlo.from_text(text))
    assert counts["collective_kinds"] == {"all-gather": 1, "reduce-scatter": 1}
    assert counts["fusion_kinds"] == {"loop": 1}
    assert counts["launches"] == 3


def test_loops_are_listed_largest_first_and_unknown_last():
    line = "  %w{0} = f32[] while(%x), condition=%c, body=%b{1}\n"
    trips = ', backend_config={{"known_trip_count":{{"n":"{0}"}}}}'
    lines = [line.format(n, t and trips.format(t)) for n, t in enumerate(["", 3, 40])]
    text = "ENTRY %main (x: f32[]) -> f32[] {\n" + "".join(lines) + "}\n"
    assert facts.read("hlo", hlo.from_text(text))["loop_trips"] == [40, 3, None]


KNOWN = ', backend_config={{"known_trip_count":{{"n":"{0}"}},"known_init_step":{{"init":"0"}}}}'

PIECES = """\
%one (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  ROOT %a = f32[] fusion(%p), kind=kLoop, calls=%fused
}

%three (p: f32[]) -> f32[] {
  %p.1 = f32[] parameter(0)
  %a.1 = f32[] fusion(%p.1), kind=kLoop, calls=%fused
  %a.2 = f32[] custom-call(%a.1), custom_call_target="__cublas$gemm"
  %a.3 = f32[] copy(%a.2)
  %a.4 = f32[] bitcast(%a.3)
  ROOT %a.5 = f32[] get-tuple-element(%a.4), index=0
}

%nested (p: f32[]) -> f32[] {
  %w = f32[] while(%p), condition=%one, body=%three, backend_config={"known_trip_count":{"n":"5"}}
  ROOT %c = f32[] copy(%w)
}

"""


FREE = """parameter constant tuple get-tuple-element bitcast after-all add-dependency opt-barrier
partition-id replica-id copy-done async-update all-reduce-done"""
WORK = "fusion copy custom-call dot all-reduce copy-start sort"
LOOP = "%a = f32[] while(%x), condition=%one, body=%three"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        *([f"%a = f32[] {opcode}(%x)", 0] for opcode in FREE.split()),
        *([f"%a = f32[] {opcode}(%x)\n%b = f32[] {opcode}(%x)", 2] for opcode in WORK.split()),
        ('%a = f32[] custom-call(), custom_call_target="AllocateBuffer"', 0),
        ("%a = f32[] call(%x), to_apply=%three\n%b = f32[] call(%x), to_apply=%one", 3 + 1),
        (
            '%a = f32[] call(%x), to_apply=%three, frontend_attributes={xla_cpu_small_call="true"}',
            1,
        ),
        (LOOP + KNOWN.format(10), 10 * 3),
        (LOOP + KNOWN.format(0), 0),
        (LOOP, 3 + 1),
        (LOOP.replace("three", "nested") + KNOWN.format(4), 4 * (5 * 3 + 1)),
        ("%a = f32[] conditional(%x, %x), branch_computations={%one, %three}", 3),
        ("%a = f32[] conditional(%x, %x), true_computation=%three, false_computation=%one", 3),
        ("%a = f32[] async-start(%x), calls=%three\n%b = f32[] async-done(%a)", 3),
    ],
)
def test_what_works_counts_as_often_as_it_runs_and_what_moves_no_data_is_free(lines, expected):
    body = "".join(f"  {line}\n" for line in lines.splitlines())
    text = f"{PIECES}ENTRY %main (x: f32[]) -> f32[] {{\n{body}}}\n"
    assert launches(hlo.from_text(text)) == expected


def scan(x):
    return lax.scan(lambda s, _: (jnp.tanh(x @ s), s), x[0], length=5)


def fused(x):
    return (jnp.sin(x) @ x).sum(axis=0)


def branch(x):
    return lax.cond(x[0, 0] > 0, lambda x: jnp.tanh(x) @ x, lambda x: -x, x)


@pytest.mark.parametrize("function", [scan, fused, branch])
def test_launches_are_what_the_profiler_of_xla_cpu_sees(function, tmp_path):
    x = jnp.ones((1024, 1024))
    compiled = jax.jit(function).lower(x).compile()
    program = hlo.from_text(compiled.as_text())
    opcodes = {line.name: line.opcode for line in program.instructions()}
    jax.block_until_ready(compiled(x))
    with jax.profiler.trace(str(tmp_path)):
        jax.block_until_ready(compiled(x))
    (file,) = tmp_path.rglob("*.xplane.pb")
    seen = Counter(
        event.name
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes
        for line in plane.lines
        for event in line.events
        if opcodes.get(event.name, "while") not in ("while", "conditional")
    )
    assert seen.total() == launches(program), seen
    assert seen
