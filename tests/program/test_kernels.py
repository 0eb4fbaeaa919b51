"""The kernels that somebody wrote, by their names."""

import base64

import pytest

from harness.program.compiler.places import Place
from harness.program.kernels import written

HERE = Place("step", "step.py", 3)


def hlo(*bodies):
    calls = [
        f'  %k.{n} = f32[8] custom-call(%x), custom_call_target="tpu_custom_call", '
        f'backend_config={{"body":"{base64.b64encode(body).decode()}"}}'
        for n, body in enumerate(bodies)
    ]
    return "\n".join(["HloModule m", "ENTRY %main (x: f32[8]) -> f32[8] {", *calls, "}"])


A, B, C = (f"step.py\0{name}\0main".encode() for name in "abc")


@pytest.mark.parametrize(
    ("calls", "bodies", "names"),
    [
        ("ab", (A, A + B), ["a", "b"]),  # b was traced behind a
        ("abc", (A, A + B, A + B + C), ["a", "b", "c"]),
        ("aab", (A, A, A + B), ["a", "a", "b"]),
        ("ab", (A + B, A + B), ["a or b", "a or b"]),
        ("abb", (A, A + B), ["a", "a or b"]),  # XLA has left one out: which?
        ("ab", (b"", b""), ["a or b", "a or b"]),
    ],
)
def test_kernels_are_told_apart_by_what_they_hold_and_what_is_left(calls, bodies, names):
    found = [*written(hlo(*bodies), [(name, HERE) for name in calls])]
    assert [set(one.name.split(" or ")) for one in found] == [
        set(name.split(" or ")) for name in names
    ]
    sure = [one for one in found if " or " not in one.name]
    assert all((one.function, one.file, one.line) == HERE for one in sure)
