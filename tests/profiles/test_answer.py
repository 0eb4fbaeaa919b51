from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest

import harness
from harness.jaxhooks import events
from harness.output.profile import LINES
from harness.output.profile_findings import finding_texts
from harness.output.profile_remedies import remedy_text
from harness.output.report.profile.face import Profile, load_profile
from harness.profiles.causes.cause import Cause, Remedy, ToJit, several
from harness.profiles.findings import findings
from tests.profiles.logs import (
    MAIN,
    build,
    caused,
    ended,
    ns,
    profile_of,
    request,
    samples,
    started,
)

IMPORT = events.Import(ns(100), ns(600), MAIN, {"jax": "0.10.2"})


TRAIN = "/project/train.py"
GRAD = (events.Around("vmap_f"), events.Around("grad_f"))


def text_of(profile, width=100):
    lines = profile.summary(width)
    assert len(lines) <= LINES
    # A command can be copied, whatever the length of the folder's name.
    assert all(len(line) <= width for line in lines if "harness profile" not in line)
    return "\n".join(lines)


@pytest.fixture
def recorded(tmp_path):
    """Make the profile of a process that wrote these lines, with a cause for each build."""

    def make(*lines, kind="static value", end=20_000, **fields):
        return caused(profile_of(tmp_path, [started(), *lines, ended(end)]), kind, **fields)

    return make


def compiled(count, each=1000.0, begin=1000.0, **other):
    def one(number):
        span = begin + (number - 1) * each, begin + number * each
        asked = request("unwritten", each, each, key=f"{number}", reason="no directory")
        return build(number, *span, ("compile", *span), requests=(asked,), **other)

    return [one(number) for number in range(1, count + 1)]


def test_the_first_line_is_the_answer_and_the_dearest_cause_follows(tmp_path, recorded):
    profile = recorded(IMPORT, *compiled(17), samples(30_000, program=480), end=30_000)
    for number, built in enumerate(profile.builds):
        profile.causes[built.key] = profile.causes[built.key]._replace(
            argument="steps",
            before=str(number - 1),
            after=str(number),
            remedy=Remedy("dynamic", "steps"),
        )
    text = text_of(profile)
    assert text.startswith("17 s of 30 s (57 %) went into building programs: compile 17 s\n")
    assert "the program 12 s (12 s in its own code; sampled" in " ".join(text.split())
    assert (
        "   16 s  `loss` was compiled 16 times more: `steps` is static and took 17 values, "
        "train.py:88\n           Make `steps` a dynamic argument, or let it take few values. "
        "(JH020)" in text
    )
    assert "A second run would save at most 17 s with JAX_COMPILATION_CACHE_DIR=DIR" in text
    assert f"harness profile show {tmp_path} --table causes" in text


FAILED = "PackageNotFoundError: jax"


@pytest.mark.parametrize(
    ("lines", "failures", "told"),
    [
        ([], (), "and JAX built nothing: no process that was followed imported it"),
        ([], (FAILED,), "and nobody knows what JAX built: recording it failed."),
        ([IMPORT], (), "and JAX built nothing: no function was traced, lowered or compi"),
    ],
)
def test_a_profile_without_builds_says_why(tmp_path, lines, failures, told):
    end = ended(2_000, failures=failures)
    text = text_of(profile_of(tmp_path, [started(), *lines, end]))
    assert text.startswith(f"2.0 s, {told}")
    assert (f"The profile itself failed once: {FAILED}" in text) == bool(failures)
    assert "Next" not in text


def test_one_large_program_outside_jit_is_a_finding_of_its_own(recorded):
    lines = compiled(9, each=20, function=2)
    large = replace(compiled(1, each=500, begin=5000, function=2)[0], id=99, object=99)
    large, small = findings(recorded(*lines, large, kind="shape"))
    assert (large.kind, large.reached, large.function.name) == (
        "large",
        "compiled",
        "broadcast_in_dim",
    )
    assert (small.kind, small.count) == ("small", 9)


def test_one_build_only_and_none_yet(recorded):
    text = text_of(recorded(IMPORT, *compiled(1), end=2_500))
    assert "1 build of 1 function: 1 compiled." in text
    assert "1.0 s  First build of `loss`: 1.0 s of it is compile, train.py:88" in text
    assert "not sampled" in " ".join(text.split())
    assert Profile(()).summary() == ["Nothing is recorded yet."]


LIBRARY = events.Frame("/x/site-packages/numpyro/infer/util.py", 5, "init", "library")
PYTEST = events.Frame("/x/site-packages/pytest/__main__.py", 9, "<module>", "library")
IMPORTED = events.Frame("/x/site-packages/numpyro/__init__.py", 1, "<module>", "library")
NUMPY = events.Frame("/x/site-packages/numpy/_core/fromnumeric.py", 9, "sum", "library")
USER = events.Frame("/project/train.py", 44, "main", "program")


def test_small_programs_are_told_by_who_called_them_and_loops_apart(recorded):
    """10 small programs of a library's, 5 of the program's own, and 3 loops of the library's."""
    body = (events.Around("body", "/project/train.py", 7),)
    lines = [
        events.Stack(2, (USER, LIBRARY)),
        events.Stack(3, (USER, NUMPY)),
        events.Function(3, "scan", "f", "/x/site-packages/jax/scan.py", 5, "jax", 0, body),
    ]
    for n in range(1, 19):
        function, stack = (2, 2) if n <= 10 else (2, 3) if n <= 15 else (3, 2)
        made = compiled(1, each=100, begin=1000 + 100 * n, function=function)[0]
        program = events.Program(0, 7) if n != 16 else events.Program(0, 8)
        lines.append(replace(made, id=n, stack=stack, object=n, program=program))
    # Traced inside another function only: no program.
    traced = build(19, 5000, 5001, ("trace", 5000, 5001), function=2)
    profile = recorded(*lines, replace(traced, stack=2), kind="new function object")
    library, own, loop = findings(profile)
    assert (library.kind, library.count, library.caller) == ("small", 10, "numpyro")
    assert library.sites == ("train.py:44",)
    assert library.remedy == Remedy("jit library call", second="persistent cache")
    assert (own.kind, own.count, own.caller, own.remedy.kind) == (
        "small",
        5,
        "",
        "numpy or one jit",
    )
    assert (loop.kind, loop.count, loop.caller, loop.recreated) == ("loop", 3, "numpyro", True)
    texts = [one.text for one in finding_texts(profile)]
    assert texts == [
        "10 small programs outside jit by numpyro: JAX's own `broadcast_in_dim`",
        "5 small programs outside jit: JAX's own `broadcast_in_dim`",
        "JAX's `scan` of `body` (train.py:7) was compiled outside jit by numpyro "
        "(numpyro/infer/util.py:5) 3 times: each time with a new function object",
    ]
    again = "100 ms building again, 1.7 s JAX's functions outside jit."
    assert again in text_of(profile), "two loops are the same program"


def test_a_loop_is_told_by_the_first_function_that_it_was_given(recorded):
    around = [events.Around(*one) for one in (("cond", TRAIN, 7), ("body", TRAIN, 9))]
    file = "/x/site-packages/jax/loops.py"
    loop = events.Function(3, "while", "f", file, 5, "jax", 0, tuple(around))
    (found,) = finding_texts(recorded(loop, *compiled(1, function=3)))
    assert found.text == "JAX's `while` of `cond` (train.py:7) and 1 more was compiled outside jit"


def frame(line, function):
    """A line of the program."""
    return events.Frame("/project/train.py", line, function, "program")


ABSL = (
    events.Frame("/project/train.py", 99, "<module>", "program"),
    events.Frame("/x/site-packages/absl/app.py", 316, "run", "library"),
)


@pytest.mark.parametrize(
    ("around", "library"),
    [((), ()), ((), (LIBRARY,)), (ABSL, ()), (ABSL, (LIBRARY,))],
    ids=["", "called by a library", "main called by absl", "both"],
)
def test_the_function_to_jit_is_the_outermost_that_computes_and_jits_nothing_itself(
    recorded, around, library
):
    train, accuracy = frame(44, "main"), frame(9, "accuracy")
    of_epochs, predict, jitted = frame(30, "train"), frame(5, "predict"), frame(20, "step")
    stacks = [(*around, train, of_epochs, *library, accuracy)]
    stacks += [(*stacks[0], predict), (*around, train, jitted)]
    loss = events.Function(3, "loss", "loss", "/project/train.py", 1, "program")
    lines = [loss, *(events.Stack(n + 2, frames) for n, frames in enumerate(stacks))]
    for n, (function, stack) in enumerate([(2, 2)] * 3 + [(2, 3)] * 5 + [(2, 4), (3, 4)]):
        made = compiled(1, each=20, begin=1000 + 20 * n, function=function)[0]
        lines.append(replace(made, id=n + 1, stack=stack, object=n))
    found = findings(recorded(*lines))
    small = next(finding for finding in found if finding.kind == "small")
    assert small.remedy == Remedy("jit functions", counts=(8,), functions=(ToJit("accuracy"),))


def small_programs(recorded, *calls, kind="first", **changed):
    """Return the findings of programs of `broadcast_in_dim`, a call stack each."""
    stacks = {frames: n for n, frames in enumerate(dict.fromkeys(calls), 2)}
    lines = [events.Stack(n, frames) for frames, n in stacks.items()]
    for n, frames in enumerate(calls, 1):
        made = compiled(1, each=20, begin=1000 + 20 * n, function=2)[0]
        lines.append(replace(made, id=n, stack=stacks[frames], object=n, **changed))
    return findings(recorded(*lines, kind=kind))


def test_a_library_s_programs_are_told_at_the_program_s_own_call_and_its_function_is_to_be_jitted(
    recorded,
):
    """As of a kernel of the program's that tinygp calls when `build` makes a process of it."""
    build_, kernel = frame(30, "build"), frame(9, "Kernel.evaluate")
    inner = (frame(44, "main"), build_, LIBRARY, kernel)
    of_library, own = small_programs(recorded, *[(*inner, LIBRARY)] * 5, *[inner] * 3)
    assert of_library.sites == ("train.py:30",)
    assert of_library.remedy[:1] + of_library.remedy[6:8] == (
        "jit library call",
        (5,),
        (ToJit("build"),),
    )
    assert (own.kind, own.count) == ("small", 3)
    assert own.remedy == Remedy("jit functions", counts=(3,), functions=(ToJit("build"),))


def test_the_few_functions_that_most_small_programs_are_in_are_named(recorded):
    calls = [
        (frame(44, "main"), frame(10 * n, f"f{n}")) for n in (1, 2, 3, 4) for _ in range(9 - n)
    ]
    (found,) = small_programs(recorded, *calls)
    assert [one.name for one in found.remedy.functions] == ["f1", "f2", "f3"]
    assert found.remedy.counts == (21,)
    assert remedy_text(found.remedy).startswith(
        "Jit `f1`, `f2` and `f3`, the first to need 21 of them, if they compute with arrays alone "
    )


def test_a_function_that_its_caller_makes_is_to_be_jitted_if_it_is_made_once(recorded):
    """As of a function for each parameter that `log_det` of dynamax makes and maps over them."""
    inner = frame(12, "log_det.<locals>.one")
    (found,) = small_programs(recorded, *[(frame(44, "main"), frame(20, "log_det"), inner)] * 5)
    assert found.remedy.functions == (ToJit("one", nested=True),)


def test_a_function_to_jit_of_the_name_of_one_that_is_jitted_is_told_by_its_file(recorded):
    """As of `hmm_filter` of two modules of dynamax, one jitted and one not."""
    jitted = events.Function(3, "filter", "filter", "/project/plain.py", 10, "program")
    made = replace(compiled(1, function=3)[0], id=9)
    stack = events.Stack(2, (frame(9, "filter"),))
    small = [replace(compiled(1, function=2)[0], id=n, stack=2, object=n) for n in range(10, 15)]
    found = findings(recorded(jitted, made, stack, *small))
    functions = [one.remedy.functions for one in found if one.kind == "small"]
    assert functions == [(ToJit("filter", "train.py"),)]


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("import numpy as np\n", "numpy to library"),
        ("from plots.jax import draw\n", "jit library call"),
    ],
)
def test_what_is_handed_to_a_library_without_jax_is_to_be_numpys(recorded, tmp_path, text, remedy):
    file = tmp_path / "site-packages" / "plots" / "draw.py"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    library = events.Frame(str(file), 1, "draw", "library")
    (found,) = small_programs(recorded, *[(USER, library)] * 3)
    assert (found.count, found.caller, found.remedy.kind) == (3, "plots", remedy)


@pytest.mark.parametrize("name", ["Model.predict", "test_it", "<lambda>", "__call__"])
def test_what_jit_would_break_or_is_no_function_is_not_named(recorded, name):
    (found,) = small_programs(recorded, *[(frame(9, name),)] * 5)
    assert found.remedy.kind == "numpy or one jit"


@pytest.mark.parametrize(("word", "named"), [("yield", False), ("return", True)])
def test_a_generator_is_not_named_to_be_jitted(recorded, tmp_path, word, named):
    file = tmp_path / "loader.py"
    file.write_text(f"def batches(data):\n    {word} data + 1\n")
    calls = [(events.Frame(str(file), 2, "batches", "program"),)] * 5
    (found,) = small_programs(recorded, *calls)
    assert (found.remedy.functions == (ToJit("batches"),)) == named


@pytest.mark.parametrize(
    "line", ["print(array.mean())", "np.asarray(array).sum()", "return float(array)"]
)
def test_what_asks_for_values_is_not_named_to_be_jitted(recorded, tmp_path, line):
    file = tmp_path / "train.py"
    file.write_text(f"def norm(array):\n    {line}\n")
    calls = [(events.Frame(str(file), n, "norm", "program"),) for n in range(5)]
    (found,) = small_programs(recorded, *calls)
    assert found.remedy.kind == "numpy or one jit"


@pytest.mark.parametrize(
    ("frames", "changed", "who", "remedy"),
    [
        ((PYTEST, USER, LIBRARY), {}, ("numpyro", ""), "jit library call"),
        ((USER, IMPORTED, LIBRARY), {}, ("numpyro", "imported"), "persistent cache"),
        ((USER,), {"parent": 99}, ("", "traced"), None),
        ((USER,), {"derived": 7}, ("", ""), "jit differentiated"),
    ],
)
def test_what_no_call_to_jit_would_spare_has_another_remedy(recorded, frames, changed, who, remedy):
    (found,) = small_programs(recorded, frames, frames, **changed)
    assert (found.caller, found.when) == who
    assert (found.remedy and found.remedy.kind) == remedy


@pytest.mark.parametrize(
    ("calls", "kind", "told"),
    [
        ([(USER,), (frame(9, "main"),)] * 3, "shape", True),
        ([(USER,), (frame(9, "main"),)] * 3, "dtype", False),
        ([(USER, frame(n, "f")) for n in range(4)], "shape", False),
        ([(USER,)] * 6, "shape", False),  # one call, as of zeros for all parameters
    ],
)
def test_what_is_built_for_ever_other_shapes_is_told(recorded, calls, kind, told):
    (found,) = small_programs(recorded, *calls, kind=kind)
    assert found.sizes == 3 * told


def test_a_few_programs_as_for_a_random_key_are_nothing_to_change(recorded):
    (found,) = small_programs(recorded, *[(USER,)] * 4)
    assert found.remedy is None


def test_a_loop_of_python_s_over_an_array_is_told_as_such(recorded):
    unstack = events.Function(3, "unstack", "unstack", "/x/site-packages/jax/lax.py", 5, "jax")
    own = replace(compiled(1, each=500, function=3)[0], stack=2)
    library = replace(compiled(1, each=500, begin=5000, function=3)[0], id=9, stack=3)
    stacks = events.Stack(2, (USER,)), events.Stack(3, (USER, LIBRARY))
    by_kind = {one.kind: one for one in findings(recorded(unstack, *stacks, own, library))}
    small = by_kind["small"]
    assert (small.count, small.when, small.remedy.kind) == (1, "iteration", "numpy to iterate")
    assert by_kind["large"].caller == "numpyro"  # what a library iterates is the library's


def test_findings_add_up_to_all_builds(recorded):
    grad = events.Function(3, "loss", "loss", "/project/train.py", 10, "program", 0, GRAD[1:])
    lines = [grad, *compiled(8), build(9, 20_000, 20_500, ("compile", 20_000, 20_500), function=2)]
    for n in range(3):  # first builds of 1 ms each
        at = 30_000 + 10 * n
        lines.append(events.Function(10 + n, f"g{n}", "g", "/project/train.py", 50, "program"))
        lines.append(build(20 + n, at, at + 1, ("trace", at, at + 1), function=10 + n))
    profile = recorded(*lines, kind="shape", end=90_000)
    found = findings(profile)
    whole = sum(built.build_ns for built in profile.builds) / 1e9
    assert sum(one.seconds for one in found) == pytest.approx(whole)
    assert [(one.count, len(one.functions)) for one in found if one.kind == "firsts"] == [(3, 3)]
    assert "Of that: 7.0 s building again, 1.0 s first builds" in text_of(profile)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("committed", [("params", 2, (("state", 1),))]),
        ("static value", [("params", 1, ()), ("state", 1, ())]),
        ("weak type", [("params", 1, ()), ("state", 1, ())]),
    ],
)
def test_one_kind_of_cause_is_one_finding_but_for_what_is_changed_apart(recorded, kind, expected):
    profile = recorded(*compiled(3))
    for built, argument in zip(profile.builds[1:], ("params", "state"), strict=True):
        profile.causes[built.key] = Cause(kind, argument)
    again = [one for one in findings(profile) if one.kind == "again"]
    assert [(one.cause.argument, one.count, one.others) for one in again] == expected
    if kind == "committed":
        assert finding_texts(profile)[0].text.endswith("; and once for `state`")


def test_of_structures_that_change_each_time_one_change_is_shown(recorded):
    profile = recorded(*compiled(3))
    for built in profile.builds[1:]:
        cause = Cause("pytree", "state", "1", "2", "numbers", type="State")
        profile.causes[built.key] = cause
    text = (
        "`loss` was compiled 2 times more: `state` had another structure each time; once, fixed "
        "fields of `State` in `state` were 1, now 2"
    )
    assert text in [one.text for one in finding_texts(profile)]


def test_functions_are_named_so_that_they_can_be_told_apart(recorded):
    lambda_ = "<lambda>"
    lines = [
        events.Function(3, "loss", "loss", "/project/train.py", 10, "program", 0, GRAD),
        events.Function(4, lambda_, lambda_, "/project/train.py", 52, "program"),
        events.Function(5, "step", "step", "/x/site-packages/blackjax/base.py", 3, "library"),
        *(replace(one, function=one.id + 1) for one in compiled(4)[1:]),
        compiled(1)[0],
    ]
    profile = recorded(*lines)
    for built in profile.builds:
        profile.causes[built.key] = Cause("first")
    text = " ".join(one.text for one in finding_texts(profile))
    for name in ("`vmap(grad(loss))`:", "`<lambda>` (train.py:52)", "blackjax's `step`", "`loss`:"):
        assert name in text
    assert "4 functions" in text_of(profile)
    assert set(profile.frame("functions")["through"]) == {"", "vmap_f, grad_f"}
    assert len(profile.frame("functions")) == 4


def test_the_remedy_is_of_the_line_that_took_most(recorded):
    stacks = [events.Stack(n, (frame(n, "main"),)) for n in (5, 7)]
    builds = [replace(one, stack=7 - 2 * (n == 1)) for n, one in enumerate(compiled(4))]
    builds[1] = replace(builds[1], end_ns=builds[1].end_ns + ns(200))
    profile = recorded(*stacks, *builds)
    for built in profile.builds[1:]:
        remedy = Remedy("library object", library="solve", place=built.site)
        cause = Cause("static value", "fn", remedy=remedy)
        profile.causes[built.key] = cause
    again = next(one for one in findings(profile) if one.kind == "again")
    assert (again.count, again.sites) == (3, ("train.py:7", "train.py:5"))
    assert again.remedy.place == "train.py:7"


def test_what_differs_alike_is_to_be_changed_alike(recorded):
    profile = recorded(*compiled(3))
    names = several(["a.c", "a.d", "a.e", "a.f"])
    for built in profile.builds:
        remedy = Remedy("explicit dtype", "a.b", alike=names)
        cause = Cause("weak type", "a.b", "x", "y", remedy=remedy, alike=names)
        profile.causes[built.key] = cause
    (found,) = finding_texts(profile)
    assert found.text.startswith("`loss` was compiled 3 times more: `a.b` was x, now y")
    assert found.remedy.endswith(" The same for `a.c`, `a.d`, `a.e` and 1 more.")


def test_random_keys_that_are_unpacked_are_no_array_to_loop_over(recorded):
    unstack = events.Function(3, "unstack", "unstack", "/x/site-packages/jax/lax.py", 5, "jax")
    given = events.Arguments(9, (events.Leaf("x", "key<fry>[2]"),), ())
    builds = [replace(one, arguments=9) for one in compiled(5, each=50, function=3)]
    (found,) = findings(recorded(unstack, given, *builds))
    assert found.remedy.kind == "numpy or one jit"


def test_what_is_wrong_with_the_logs_is_told(tmp_path):
    end = ended(9_000, lost=3, failures=("ValueError: no",))
    profile_of(tmp_path, [started(), *compiled(2)], [started(pid=8), *compiled(1), end])
    (log,) = list(tmp_path.glob("*-1.jsonl"))
    log.write_bytes(log.read_bytes() + b'{"event":"bui')
    text = text_of(caused(load_profile(tmp_path), "unexplained"))
    for told in (
        "1 log cut off (process 7): killed, or still running.",
        "1 line of the logs could not be read.",
        "3 lines could not be written",
        "The profile itself failed once: ValueError: no",
        "2 builds could not be explained.",
        "in 2 processes",
    ):
        assert told in text


def test_a_build_that_never_ended_comes_first(tmp_path):
    hung = [events.Running(1, "compile", 1, MAIN, ns(1_000), ns(at)) for at in (2_000, 190_000)]
    text = text_of(profile_of(tmp_path, [started(), *hung]))
    assert "3 min 9 s  `loss` never ended: the log stops in its compile, train.py:88" in text


def test_the_persistent_cache_when_it_is_on(recorded):
    asked = [
        request("written", 900, 800, write=50, key="a"),
        request("hit", 30, load=20, key="a"),
        request("hit", 30, load=20, key="elsewhere"),
        request("unwritten", 100, 90, key="b", reason="below the time threshold"),
    ]
    lines = [
        build(n, 1000 * n, 1000 * n + 950, ("compile", 1000 * n, 1000 * n + 900), requests=(one,))
        for n, one in enumerate(asked, 1)
    ]
    text = " ".join(text_of(recorded(*lines)).split())
    assert (
        "Persistent cache: 2 of 4 requests hit in 60 ms, which saved 780 ms without the 1 that an "
        "earlier run compiled; 1 written; not written: 1 below the time threshold "
        "(jax_persistent_cache_min_compile_time_secs)." in text
    )


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        ((0.4, 0.5), "save nothing with JAX_COMPILATION_CACHE_DIR=DIR, at most 900 ms with JAX_PE"),
        ((0.5, 2.5), "save at most 2.5 s with JAX_COMPILATION_CACHE_DIR=DIR, at most 3.0 s with"),
        ((1.5, 2.0), "save at most 3.5 s with JAX_COMPILATION_CACHE_DIR=DIR, minus the time"),
        ((0.0, 0.0), "It would save a second run nothing."),
    ],
)
def test_what_the_persistent_cache_would_save(recorded, seconds, told):
    (one,), (two,) = (compiled(1, 1e3 * took, 9e3 * n) for n, took in enumerate(seconds))
    lines = one, replace(two, id=2)
    assert told in " ".join(text_of(recorded(*lines)).split())


def test_where_the_persistent_cache_is_disabled_nothing_is_promised(recorded):
    asked = request("unwritten", 2000, 2000, key="a", reason="disabled")
    text = text_of(recorded(build(1, 1000, 4000, ("compile", 1000, 3000), requests=(asked,))))
    assert "Persistent cache: disabled: by jax_enable_compilation_cache" in text
    assert "save" not in text


@pytest.mark.parametrize("width", [20, 60, 100, 200])
def test_it_fits_a_screen_whatever_is_in_it(tmp_path, width):
    lines = []
    for n in range(2, 120):
        if n % 2 == 0:
            name = f"a_function_with_a_very_long_name_{n}" * 3
            lines.append(events.Function(100 + n, name, name, f"/l/{n}.py", 1, "program"))
        span = 1000 * n, 1000 * n + 900
        lines.append(build(n, *span, ("trace", *span), function=100 + n - n % 2))
    long = "word " * 100
    profile = profile_of(tmp_path, [started(), *lines, ended(200_000, lost=1, failures=(long,))])
    caused(profile, "shape", argument="x" * 50, before=long, remedy=Remedy("pad", "x" * 50))
    found = profile.summary(width)
    assert len(found) <= LINES
    assert all(len(line) <= max(60, width) for line in found if "harness profile" not in line)
    assert "other finding" in "\n".join(found)


def test_the_place_of_a_finding_is_told_where_its_text_is_cut(recorded):
    """As of two structures of flax, which are long."""
    profile = recorded(*compiled(2), kind="pytree", before="one, " * 60)
    (line,) = [line for line in text_of(profile).splitlines() if line.endswith("…, train.py:88")]
    assert len(line) > 80


def test_a_place_that_goes_on_in_the_next_line_cuts_nothing(recorded):
    lines = [events.Stack(2, (USER,)), events.Stack(3, (frame(9, "main"),))]
    for n in range(6):
        made = compiled(1, each=20, begin=1000 + 20 * n, function=2)[0]
        lines.append(replace(made, id=n + 1, stack=2 + n % 2, object=n))
    profile = recorded(*lines)
    for width in range(60, 101):
        assert "`broadcast_in_dim`, most at " in " ".join(text_of(profile, width).split())


def test_a_call_that_raised_is_not_said_to_have_built_anything(recorded):
    profile = recorded(IMPORT, *compiled(3), kind="raised", after="TypeError")
    assert "raised TypeError 2 times, and nothing was built" in text_of(profile)


def test_threads_are_counted_and_added_up(recorded):
    lines = [
        build(n, 200, 300, ("trace", 200, 300), thread=n % 3, function=1 + n % 2)
        for n in range(1, 1_001)
    ]
    text = text_of(recorded(*lines))
    assert "1,000 builds of 2 functions in 3 threads: 1,000 traced." in text
    assert "Threads added up: 200 ms building again, 100 ms JAX's functions outside jit" in text


def test_first_builds_of_one_function_have_their_processes(tmp_path):
    logs = ([started(pid=pid), *compiled(1), ended(9_000)] for pid in (7, 8, 9))
    (first,) = finding_texts(caused(profile_of(tmp_path, *logs), "first"))
    assert first.text.startswith("3 first builds of `loss` in 3 processes: ")


def test_what_was_loaded_is_not_reported_as_compiled(recorded):
    """As of a loop of a library's outside jit, whose programs the persistent cache has."""
    body = (events.Around("body", TRAIN, 7),)
    scan = events.Function(3, "scan", "f", "/x/site-packages/jax/scan.py", 5, "jax", 0, body)
    hit = request("hit", 90, load=80)
    builds = compiled(8, function=3)
    builds = [replace(one, requests=(hit,) if n else one.requests) for n, one in enumerate(builds)]
    (loop,) = finding_texts(
        recorded(scan, *(replace(b, object=b.id) for b in builds), kind="shape")
    )
    assert loop.text == (
        "JAX's `scan` of `body` (train.py:7) was compiled once and loaded 7 times outside jit"
    )
    again = [replace(one, requests=(hit,)) for one in compiled(3)]
    texts = finding_texts(recorded(*compiled(2), *(replace(one, id=one.id + 2) for one in again)))
    assert any("`loss` was compiled once and loaded 3 times more: " in one.text for one in texts)


def test_a_remedy_that_was_printed_above_is_referred_to(recorded):
    other = events.Function(3, "step", "step", "/project/train.py", 20, "program")
    builds = [replace(one, id=one.id + 3, function=3) for one in compiled(3, each=500, begin=9000)]
    pad = Remedy("pad", "x")
    text = text_of(recorded(other, *compiled(3), *builds, kind="shape", remedy=pad))
    assert text.count("Pad `x`") == 1
    assert "As for the 2.0 s above (JH050)" in text


def test_the_threshold_that_keeps_programs_out_of_the_cache_has_the_value_that_helps(recorded):
    asked = request("unwritten", 500, 400, key="a", reason="below the time threshold")
    lines = [
        build(n, 1e3 * n, 1e3 * n + 500, ("compile", 1e3 * n, 1e3 * n + 500), requests=(asked,))
        for n in (1, 2, 3)
    ]
    text = " ".join(text_of(recorded(*lines)).split())
    assert (
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 would save at most 1.2 s at each later start "
        "(3 programs)."
    ) in text


@pytest.mark.parametrize("stages", [("lower",), ("lower", "compile")])
def test_the_stages_of_a_program_ahead_of_time_are_one_build(stages):
    jax.clear_caches()
    with harness.profile(sample_ms=0) as profile:
        for size in (3, 5, 7):
            lowered = jax.jit(lambda_).lower(np.ones(size, np.float32))
            if "compile" in stages:
                lowered.compile()(np.ones(size, np.float32))
    texts = [one.text for one in finding_texts(profile)]
    done = "compiled" if "compile" in stages else "lowered"
    again = f"`lambda_` was {done} 2 times more: `x` had 3 shapes"
    assert again in texts
    assert [text.startswith("First build of `lambda_`") for text in texts].count(True) == 1
    assert len(texts) == 2
    assert "3 builds of 1 function" in "\n".join(profile.summary())


def lambda_(x):
    return x * 2
