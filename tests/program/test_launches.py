from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from harness.program import hlo
from harness.program.hlo import launches

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
