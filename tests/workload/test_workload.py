from __future__ import annotations

import functools
import importlib.util
import itertools
import re
import sys
import textwrap

import numpy as np
import pytest

import harness
import harness.records.schema
import harness.stages.scenarios.registry
from harness.workload.axes import RESERVED_AXES
from harness.workload.check import check
from harness.workload.source import METHOD_VERSION, source_of, version_of
from harness.workload.workload import (
    Case,
    Workload,
    WorkloadError,
    enumerate_cases,
    make_arguments,
    name_of,
    skip_reason,
    spec,
    static_arguments,
)


class Good(Workload):
    sweep = {"size": [16, 32], "steps": (1, 2, 3)}
    static = ("steps",)
    donate = ("x",)
    transforms = ("forward", "gradient")
    targets = ("cpu", "gpu")

    def inputs(self, size):
        return spec((size,)), spec((size,))

    @staticmethod
    def function(x, y, *, steps):
        return x + steps * y


def declare(**attributes):
    """Return a workload like `Good` but for some attributes, which this module has as Changed."""
    globals()["Changed"] = type("Changed", (Good,), attributes)
    return globals()["Changed"]


HOOKS = ("baseline", "reference", "fused_cpu", "fused_gpu")


def test_a_right_declaration_passes():
    check(Good)
    for baseline in (right, lambda xp, *arrays, steps: arrays, lambda xp, x, y, **keywords: x):
        fused = {"fused_cpu": staticmethod(lambda: None), "precisions": ("ieee",)}
        sides = dict.fromkeys(("baseline", "reference"), staticmethod(baseline))
        check(declare(**sides, **fused))


def generating(x, y, *, steps):
    yield x


async def awaiting(x, y, *, steps):
    return x


class Callable:
    async def __call__(self, x, y, *, steps):
        return x


def right(xp, x, y, *, steps):
    return x + steps * y


WRONG = [
    ({"static": ("unroll",)}, r"static names 'unroll', .* axes are \['size', 'steps'\]"),
    ({"static": ("size",)}, r"static names 'size', which function does not take; .*'steps'\]"),
    ({"static": "steps"}, r"static is 'steps'; expected a sequence .* such as \('steps',\)"),
    ({"static": 5}, r"static is 5; expected a sequence of names"),
    ({"donate": ("z",)}, r"donate names 'z', .* they are \['x', 'y', 'steps'\]"),
    ({"donate": "x"}, r"donate is 'x'; expected a sequence of names"),
    ({"donate": (0,)}, r"donate is \(0,\); expected a sequence of names"),
    ({"donate": ("x", "x")}, r"donate names 'x' twice"),
    (
        {"transforms": ("backward",)},
        r"transforms names 'backward'\..* There are: forward, grad",
    ),
    ({"transforms": ("vmap", "vmap")}, r"transforms names 'vmap' twice"),
    ({"transforms": ()}, r"transforms is empty, so there would be no case"),
    ({"targets": ("npu",)}, r"targets names 'npu'\..* There are: cpu, gpu, tpu, gpu:"),
    ({"vmap_batch": 0}, r"vmap_batch is 0; expected at least 1\."),
    ({"targets": ("cpu", "cpu")}, r"targets names 'cpu' twice"),
    ({"targets": "cpu"}, r"targets is 'cpu'; expected a sequence of names"),
    ({"targets": []}, r"targets is empty, so there would be no case"),
    ({"depends_on": "env:MODE"}, r"depends_on is 'env:MODE'; expected a sequence of names"),
    ({"depends_on": ("env:",)}, r"depends_on names 'env:'; expected env: and the name of a"),
    ({"depends_on": ("env:XLA_FLAGS",)}, r"depends_on .* records hold JAX's and XLA's own"),
    ({"depends_on": ("no.npz",)}, r"depends_on names 'no.npz', and there is no file /.*no.npz"),
    ({"depends_on": (".",)}, r"depends_on names the folder '.'; expected its files"),
    ({"sweep": [16, 32]}, r"sweep is \[16, 32\]; expected a mapping from axis name"),
    (
        {"sweep": {"size": [1], "steps": {"one": [1]}}},
        r"static names 'steps', which is \[1\] of type list where steps is 'one': JAX hashes",
    ),
    (
        {"sweep": {"size": [1], "steps": [1], "depth": [1, 2]}},
        r"axis 'depth' reaches neither inputs \(which takes \['size'\]\) nor function",
    ),
    (
        {"inputs": lambda self, size, width: spec((size, width))},
        r"inputs wants 'width', which is no axis of its sweep; the axes are \['size', 'st",
    ),
    ({"inputs": None}, r"inputs is None of type NoneType; expected a method"),
    ({"skip": True}, r"skip is True of type bool; expected a method"),
    ({"__init__": lambda self, n: None}, r"it cannot be made without arguments: TypeError: "),
    (
        {"baseline": lambda x, y, *, steps: x},
        r"baseline takes \(x, y, \*, steps\); expected \(xp, x, y, steps=...\)",
    ),
    ({"baseline": lambda xp, x, y: x}, r".*static ones by keyword"),
    ({"baseline": lambda xp, x, y, z, *, steps: x}, "baseline takes"),
    ({"baseline": 3}, "baseline is 3; expected a static method"),
    ({"baseline": right, "reference": lambda np, x, *, steps: x}, "reference takes"),
    ({"baseline": right, "fused_cpu": lambda a, b: a}, "fused_cpu takes .* without parameters"),
    ({"fused_gpu": lambda: None}, "fused_gpu is there without baseline"),
    ({"precisions": ("fp8",)}, r"precisions names 'fp8'\..* There are: ieee, tf32, bf16"),
    ({"precisions": "ieee"}, "precisions is 'ieee'; expected a sequence of names"),
    *(
        ({"sweep": {axis: [1], "size": [1], "steps": [1]}}, rf"axis {re.escape(repr(axis))} {said}")
        for said, wrong in (
            ("is no identifier; it becomes an argument name", ["two words", "1st", "a-b", "", 7]),
            ("has the name of a column", sorted(RESERVED_AXES)),
        )
        for axis in wrong
    ),
]
WRONG_SIZES = [
    ([], r"axis 'size' has no values, so there would be no case"),
    ("abc", r"axis 'size' has 'abc'; expected a list of the values"),
    (b"abc", r"axis 'size' has b'abc'; expected a list"),
    (16, r"axis 'size' has 16; expected a list"),
    ({16, 32}, r"axis 'size' has \{.*\}; expected a list"),
    ([16, 32, 16], r"axis 'size' has the value 16 twice: two cases would have one identity"),
    ([float("nan")], r"axis 'size' has the value nan of type float; expected str, int"),
    ([float("inf")], r"axis 'size' has the value inf of type float"),
    ([(1, float("nan"))], r"axis 'size' has the value \(1, nan\) of type tuple"),
    (
        [[1, 2]],
        r"axis 'size' has the value \[1, 2\] of type list; .*Give it a name, .*'NAME': \.\.\.",
    ),
    ([np.int64(3)], r"axis 'size' has the value np\.int64\(3\) of type int64"),
    ([np.float64(0.5)], r"axis 'size' has the value np\.float64\(0\.5\) of type float64"),
    ([None], r"axis 'size' has the value None of type NoneType"),
    ([np.tanh], r"axis 'size' has the value <ufunc 'tanh'> of .*'size': \{'tanh': \.\.\.\}\."),
    ({np.tanh: 1}, r"axis 'size' has the name <ufunc 'tanh'> of type ufunc; expected str"),
    ({}, r"axis 'size' has no values"),
    ({"S": {}}, r"axis 'size' has the name 'S' for no arguments at all: \{\}"),
    (
        {"S": {"n": 1}, "M": {"n": 2, "m": 3}},
        r"axis 'size' couples \['n'\], and 'M' gives \['n', 'm'\]; expected the same arguments",
    ),
    ({"S": {"n": 1}, "M": 2}, r"axis 'size' couples \['n'\], and 'M' gives 2, no mapping"),
    ({"S": {1: 1}}, r"axis 'size' couples 1, which is no identifier"),
    ({"S": {"steps": 1}}, r"axis 'size' couples 'steps', which another axis gives as well"),
    ({"S": {"target": 1}}, r"axis 'size' couples 'target', which another axis gives"),
]
WRONG_FUNCTIONS = [
    (None, r"function is None of type NoneType; expected a function that JAX can trace"),
    ("jax.numpy.tanh", r"function is 'jax.numpy.tanh' of type str; expected a function"),
    (7, r"function is 7 of type int; expected"),
    (np, r"function is <module 'numpy' .*> of type module; expected"),
    (
        Callable,
        r"function is <class .*Callable'>, and calling a class makes an object\. Name the",
    ),
    (
        generating,
        r"function is .*generating.*, which is a generator: JAX cannot trace it\. Ret",
    ),
    (functools.partial(generating, 1), r".*which is a generator"),
    (awaiting, r"function is .*awaiting.*, which is asynchronous: JAX cannot trace it\. Write"),
    (Callable(), r".*which is asynchronous"),
    (max, r"function is <built-in function max>, whose parameters Python cannot tell\. Name a"),
    (Good.inputs, r"function is .*, which takes self\. .* make it a staticmethod"),
]


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        *WRONG,
        *(({"sweep": {"size": values, "steps": [1]}}, text) for values, text in WRONG_SIZES),
        *(({"function": staticmethod(function)}, text) for function, text in WRONG_FUNCTIONS),
    ],
)
def test_a_wrong_attribute_is_named_with_what_was_expected(attributes, text):
    made = {n: staticmethod(a) if n in HOOKS and callable(a) else a for n, a in attributes.items()}
    with pytest.raises(WorkloadError, match=rf"^Changed .*: {text}"):
        check(declare(**made))


class Stencil(Workload):
    """Coupled sizes, and a function by its name."""

    sweep = {
        "size": {"S": {"n": 4, "steps": 2}, "M": {"n": 8, "steps": 3}},
        "activation": {"none": abs, "tanh": np.tanh},
    }
    static = ("steps", "activation")
    targets = ("cpu",)

    def inputs(self, n):
        return spec((n,))

    def skip(self, size, n, activation, **case):
        return f"{size}: {n}" if activation is abs and n > 4 else None

    @staticmethod
    def function(x, steps, activation):
        return activation(x) * steps


def test_a_named_value_is_its_name_for_people_and_the_thing_for_the_code():
    check(Stencil)
    cases = list(enumerate_cases(Stencil))
    assert [case.label for case in cases[:2]] == [
        "size=S, activation=none",
        "size=S, activation=tanh",
    ]
    assert make_arguments(Stencil, cases[3]).flat[0].shape == (8,)
    assert static_arguments(Stencil, cases[3]) == {"steps": 3, "activation": np.tanh}
    assert [skip_reason(Stencil, case) for case in cases] == [None, None, "M: 8", None]
    # Of an axis of numbers others may be derived as well.
    changed = declare(sweep={"size": {n: {"steps": n * 2} for n in (2, 4)}})
    check(changed)
    case = next(enumerate_cases(changed))
    assert case.axes == {"size": 2}
    assert static_arguments(changed, case) == {"steps": 4}
    assert make_arguments(changed, case).flat[0].shape == (2,)
    mixed = declare(sweep={"size": [1, 1.0, True, "1", (1,), 0.0, -0.0], "steps": [1]})
    check(mixed)
    assert len({case.id for case in enumerate_cases(mixed)}) == 7 * 4, "they only look alike"


def any_axis(self, **axes):
    return spec((axes["size"], axes["steps"])), spec(())


@pytest.mark.parametrize(
    ("inputs", "shape"),
    [
        (lambda self, size, width=3: (spec((size, width)), spec(())), (16, 3)),
        (staticmethod(lambda size: (spec((size,)), spec(()))), (16,)),
        (classmethod(lambda cls, size: (spec((size,)), spec(()))), (16,)),
        (any_axis, (16, 1)),
    ],
)
def test_inputs_take_what_they_name_and_need_no_self(inputs, shape):
    changed = declare(inputs=inputs)
    check(changed)
    assert make_arguments(changed, next(enumerate_cases(changed))).flat[0].shape == shape


@pytest.mark.parametrize(
    ("members", "missing"),
    [({"function": abs}, "inputs"), ({"inputs": id}, "function"), ({}, "function, inputs")],
)
def test_a_workload_needs_inputs_and_function(members, missing):
    with pytest.raises(WorkloadError, match=rf"^Lacks .* does not define {missing};"):
        check(type("Lacks", (Workload,), members))


def test_the_name_is_relative_to_the_folder_of_benchmarks():
    outer = type("Outer", (Good,), {"__module__": "benchmarks.family.dense"})
    assert name_of(outer) == "family.dense.Outer"
    assert name_of(type("Alone", (Good,), {"__module__": "dense"})) == "dense.Alone"
    dashed = type("A-B", (Good,), {})
    with pytest.raises(WorkloadError, match=r"its name '.*A-B' holds '-', which asv uses to num"):
        check(dashed)

    class Noted:
        def __init_subclass__(cls, note="", **others):
            super().__init_subclass__(**others)
            cls.note = note

    class Both(Workload, Noted, note="of its own"):
        pass

    assert Both.note == "of its own"
    assert (harness.Workload, harness.spec) == (Workload, spec)
    with pytest.raises(AttributeError, match="module 'harness' has no attribute 'nothing'"):
        _ = harness.nothing


def test_cases_come_in_the_order_of_asvs_parameters_and_skip_says_which_are_left_out():
    class Größe(Workload):
        sweep = {"größe": [4], "μ": ["déjà", "零"]}
        static = ("μ",)
        transforms = ("forward", "gradient")

        def inputs(self, größe):
            return {"a": spec(()), "b": [spec((größe,))]}  # no tuple: the one argument

        def skip(self, μ, transform, **_):
            return "too far" if μ == "零" and transform == "gradient" else None

        @staticmethod
        def function(x, *, μ):
            return x

    check(Größe)
    cases = list(enumerate_cases(Größe))
    assert cases[0].id == "größe=4, μ='déjà', transform='forward', target='cpu'"
    assert list(cases[0].coordinates) == ["größe", "μ", "transform", "target"]
    parameters = (*Größe.sweep.values(), Größe.transforms, Workload.targets)
    wanted = list(itertools.product(*parameters))
    assert [tuple(case.coordinates.values()) for case in cases] == wanted
    assert static_arguments(Größe, cases[-1]) == {"μ": "零"}
    assert make_arguments(Größe, cases[0]).flat == ({"a": spec(()), "b": [spec((4,))]},)
    assert [skip_reason(Größe, case) for case in cases] == [None] * 9 + ["too far"] * 3
    assert version_of(Größe)
    wrong = declare(skip=lambda self, **case: True)
    with pytest.raises(WorkloadError, match=r"skip returned True for size=16.*expected the reason"):
        skip_reason(wrong, next(enumerate_cases(wrong)))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ((spec(()),), r"made 1 positional argument\(s\), static adds \['steps'\]"),
        ((spec(()),) * 3, r"too many positional arguments.*made 3 positional"),
        ([spec(()), spec(())], r"made 1 positional .* a tuple holds the arguments, anything else"),
    ],
)
def test_inputs_that_the_function_does_not_accept_are_an_error(made, said):
    changed = declare(inputs=lambda self, size: made)
    case = Case({"size": 16, "steps": 1})
    text = rf"function does not accept the inputs of size=16, steps=1, transform='forward'.*{said}"
    with pytest.raises(WorkloadError, match=text):
        make_arguments(changed, case)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((5,), r"spec: shape is 5; expected a sequence of sizes such as \(1024, 256\), or \(\)"),
        ((("a",),), r"spec: shape is \('a',\); expected a sequence of sizes"),
        (((2.5,),), r"spec: shape is \(2\.5,\); expected a sequence of sizes"),
        (((2, -1),), r"spec: shape is \(2, -1\); sizes cannot be negative"),
        (((2,), "float32", 0.0), r"spec: low is 0\.0 and high is None; give both or neither"),
        (((2,), "float32", None, 1.0), r"spec: low is None and high is 1\.0; give both"),
    ],
)
def test_a_bad_spec_is_refused_where_it_is_written(arguments, text):
    with pytest.raises(WorkloadError, match=text):
        spec(*arguments)
    assert spec(np.array([2, 3])).shape == (2, 3), "NumPy's integers"


# --- versions -------------------------------------------------------------------------------------

MODULE = """
from harness import Workload, spec

FACTOR = 1  # one

def outside(x):
    return x + 1

class Mixin:
    def helper(self):
        return 2

class Base(Mixin, Workload):
    def inputs(self):
        return spec((self.helper(),))

class Own(Base):
    @staticmethod
    def function(x):
        return x * 2

class Borrowed(Base):
    function = staticmethod(outside)
"""


def versions(tmp_path, text):
    """Return the versions of the workloads in a module of that text."""
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    folder.mkdir()
    file = folder / "versioned.py"
    file.write_text(textwrap.dedent(text))
    found = importlib.util.spec_from_file_location("versioned", file)
    module = sys.modules["versioned"] = importlib.util.module_from_spec(found)
    try:
        found.loader.exec_module(module)
        return {name: version_of(getattr(module, name)) for name in ("Own", "Borrowed")}
    finally:
        del sys.modules["versioned"]


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("x * 2", "x * 3", {"Own"}),
        ("x + 1", "x - 1", {"Borrowed"}),
        ("spec((self.helper(),))", "spec((self.helper(), 1))", {"Own", "Borrowed"}),
        ("return 2", "return 3", {"Own", "Borrowed"}),
        ("# one", "# a comment that stands\n# outside of every class", set()),
        ("FACTOR = 1", "FACTOR = 2", set()),
    ],
    ids=["class", "outside function", "base class", "mixin", "comment", "global"],
)
def test_a_version_follows_the_source_that_defines_the_workload(tmp_path, old, new, changed):
    before = versions(tmp_path, MODULE)
    after = versions(tmp_path, MODULE.replace(old, new))
    assert {name for name in before if before[name] != after[name]} == changed


def test_a_change_of_an_imported_function_makes_no_other_workload(tmp_path, monkeypatch):
    text = "from under_test import outside\n" + MODULE.replace("def outside", "def inside")
    found = []
    for sign in "+-":
        code = f"def outside(x):\n    return x {sign} 1\n"
        (tmp_path / sign).mkdir()
        (tmp_path / sign / "under_test.py").write_text(code)
        with monkeypatch.context() as patch:
            patch.syspath_prepend(tmp_path / sign)
            patch.delitem(sys.modules, "under_test", raising=False)
            found.append(versions(tmp_path, text))
            del sys.modules["under_test"]
    assert found[0] == found[1]


def test_a_version_changes_with_the_method_and_with_coupled_values(monkeypatch):
    def version(steps):
        # One name for all: only what the mapping holds differs.
        sizes = {"S": {"n": 4, "steps": steps, "act": abs}}
        return version_of(type("Sized", (Stencil,), {"__module__": "m", "sweep": {"size": sizes}}))

    assert version(2) == version(2) != version(3)
    before = version(2).split(".")
    monkeypatch.setattr("harness.workload.source.METHOD_VERSION", METHOD_VERSION + 1)
    after = version(2).split(".")
    assert (int(before[0]), int(after[0])) == (METHOD_VERSION, METHOD_VERSION + 1)
    assert before[1] != after[1]


TYPED = """
class Typed(Workload):
    scale = {scale}
    def inputs(self, n={default}):
        return spec((4,))
    @staticmethod
    def function(x):
        inner = lambda y: y + {inner} if y in {{"a", "b", "c"}} else {constant}
        return inner(x)
"""


def typed(**changes):
    """Return a workload as it is typed at a plain prompt: there is no text to be had."""
    text = TYPED.format(**{"scale": 1, "default": 1, "inner": 1, "constant": 1, **changes})
    names = {"Workload": Workload, "spec": spec, "__name__": __name__}
    exec(text, names)
    return names["Typed"]


@pytest.mark.parametrize("change", ["scale", "default", "inner", "constant"])
def test_a_class_without_text_has_a_version_that_follows_its_code(change):
    assert version_of(typed()) == version_of(typed())
    assert version_of(typed()) != version_of(typed(**{change: 7}))
    assert source_of(typed()).startswith("class Typed:\nfunction: "), "not the text of another"


def test_a_class_made_by_type_has_a_version_without_addresses():
    class Function:
        def __call__(self, x):
            return x

    def doubled(x):
        return x * 2

    def halved(x):
        return x / 2

    made = [
        version_of(declare(function=staticmethod(function), other=Function()))
        for function in (doubled, doubled, halved, Function(), Function())
    ]
    assert made[0] == made[1] != made[2] != made[3] == made[4]
    assert "return x * 2" in source_of(declare(function=staticmethod(doubled)))
