from types import SimpleNamespace

import jax
import pytest

from harness.program.text import fingerprint, normalise, normalise_jaxpr, normalise_stablehlo

FUNCTION = """
import jax.numpy as jnp

def function(x):
    return jnp.tanh(x @ x.T).sum() * {constant}
"""


def traced(constant=2.0, lines=0, file="here.py"):
    """Trace the function as it stands `lines` further down in a file of that name."""
    names = {}
    exec(compile("\n" * lines + FUNCTION.format(constant=constant), file, "exec"), names)
    return jax.jit(names["function"]).trace(jax.ShapeDtypeStruct((4, 4), "float32"))


def compiled(constant=2.0, **where):
    return traced(constant, **where).lower().compile()


def test_the_same_function_on_other_lines_of_another_file_is_the_same_program():
    one, other = compiled(), compiled(lines=40, file="there.py")
    assert one.as_text() != other.as_text()  # or this test would show nothing
    assert normalise(one.as_text()) == normalise(other.as_text())
    assert fingerprint(one) == fingerprint(other)


def test_another_constant_is_another_program():
    assert fingerprint(compiled(2.0)) != fingerprint(compiled(3.0))


def test_what_has_no_text_has_no_fingerprint():
    assert fingerprint(SimpleNamespace(as_text=lambda: None)) == ""


ADD = "  ROOT add.1 = f32[2]{0} add(x, y)"
SINE = "    %0 = stablehlo.sine %arg0 : tensor<4xf32>"
TABLES = """FileNames
1 "a.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 line=3}

StackFrames
1 {file_location_id=1}

"""


@pytest.mark.parametrize(
    "metadata",
    [
        ', metadata={op_name="jit(f)/add" source_file="a.py" source_line=3}',
        ', metadata={op_name="a } in { braces" stack_frame_id=7}',
        r', metadata={op_name="a quoted \" and } more" source_line=1}',
        ",  metadata={}",
    ],
)
@pytest.mark.parametrize("after", ["", ', backend_config={"a":{"b":"1"}}'])
def test_metadata_are_stripped_whatever_they_hold_and_what_follows_is_kept(metadata, after):
    text = f"HloModule jit_f\n\n{TABLES}ENTRY main {{\n{ADD}{metadata}{after}\n}}\n"
    assert normalise(text) == f"HloModule jit_f\nENTRY main {{\n{ADD}{after}\n}}\n"


def test_stablehlo_with_locations_becomes_that_without_from_wherever():
    lowered = traced().lower()
    plain = normalise_stablehlo(lowered.as_text())
    assert "loc" not in plain
    for one in (lowered, traced(lines=9, file="there.py").lower()):
        full = one.as_text(debug_info=True)
        assert "loc(" in full
        assert normalise_stablehlo(full) == plain


@pytest.mark.parametrize(
    "location",
    [
        "loc(unknown)",
        "loc(#loc12)",
        'loc("a ) name \\" (")',
        'loc("f"("a.py":3:1 to :9))',
        'loc(callsite("f" at "g"("h")))',
    ],
)
def test_locations_are_stripped_whatever_they_hold_and_so_is_their_table(location):
    tables = f'#loc = loc(unknown)\n#loc1 = loc("x"(#loc))\n{{}}#loc2 = {location}\n'
    text = tables.format(f"module {{\n{SINE} {location}\n}} {location}\n")
    assert normalise_stablehlo(text) == f"module {{\n{SINE}\n}}\n"


def test_source_comments_of_a_jaxpr_are_stripped():
    jaxpr = traced().jaxpr
    full = jaxpr.pretty_print(source_info=True)
    assert "here.py" in full
    assert normalise_jaxpr(full) == normalise_jaxpr(str(jaxpr))


def test_addresses_in_a_jaxpr_are_stripped():
    one, other = (f"c = call[f=<function g at {at}>] a" for at in ("0x7f01aB", "0x55de3"))
    assert normalise_jaxpr(one) == normalise_jaxpr(other) == "c = call[f=<function g at 0x>] a\n"


def test_the_jaxpr_of_a_callback_is_the_same_each_time():
    def build():
        def on_host(v):
            return v

        shape = jax.ShapeDtypeStruct((), "float32")
        return jax.jit(lambda x: jax.pure_callback(on_host, shape, x)).trace(1.0).jaxpr

    assert normalise_jaxpr(str(build())) == normalise_jaxpr(str(build()))
