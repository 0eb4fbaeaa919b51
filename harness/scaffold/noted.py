"""Run tests under pytest and note what they call with arrays; run as a script, by its path.

Reads a question as JSON from standard input and answers with one line of JSON on standard output.
Every call that stands in the file of tests is made through :meth:`NotedTests.call`, which knows the
function itself and the arrays that it gets, whatever fixtures and parameters made them.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.machinery
import inspect
import itertools
import json
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest

NOTED = "__noted_call__"
LOOK_AROUND = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec"})
"""Calls that mean something else where somebody makes them for the test."""

MOVE_ARRAYS = frozenset({"block_until_ready", "device_put", "device_get"})
PLAIN = (str, int, float, bool)


class NotedTests:
    """A plugin of pytest's: the calls of each test of a file, and how the test ended."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.tests: list[dict[str, Any]] = []
        self.test: dict[str, Any] = {}
        self.module: Any = None

    @pytest.fixture
    def benchmark(self) -> None:
        """Be there where pytest-benchmark is not installed."""

    def pytest_configure(self, config: Any) -> None:
        """Make its mark known, too."""
        config.addinivalue_line("markers", "benchmark: a benchmark")

    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        """Put a stand-in in the place of the fixture."""
        if fixturedef.argname != "benchmark":
            return None
        made = Benchmark(self)
        fixturedef.cached_result = (made, fixturedef.cache_key(request), None)
        return made

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Where some tests have a benchmark, leave the others out."""
        items[:] = [
            one for one in items if "benchmark" in getattr(one, "fixturenames", ())
        ] or items

    def pytest_runtest_setup(self, item: Any) -> None:
        """Begin a test."""
        spec = getattr(item, "callspec", None)
        name = item.nodeid.partition("::")[2].partition("[")[0]
        if "TestCase" in type(item).__name__:
            name = name.rstrip("0123456789")  # absl numbers the methods that its parameters make
        params = {k: v for k, v in spec.params.items() if type(v) in PLAIN} if spec else {}
        case = spec.id if spec else ""
        self.module = getattr(item, "module", None)
        self.test = {"test": name, "case": case, "params": params, "calls": [], "said": ""}
        self.tests.append(self.test)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep why a test failed, or was skipped."""
        if not report.passed and "benchmark" not in self.test:
            crash = getattr(getattr(report.longrepr, "reprcrash", None), "message", "")
            text = crash or (report.longrepr[-1] if type(report.longrepr) is tuple else "")
            # JAX puts the traceback of a callback that raised before its error.
            text = re.sub(r"Traceback \(most recent call last\):\n(?:  .*\n)+", "", text)
            self.test["said"] = text.strip().partition("\n")[0]

    def pytest_collectreport(self, report: Any) -> None:
        """Keep why the file cannot be imported."""
        if report.failed:
            lines = str(report.longrepr).strip().splitlines()
            last = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
            self.tests.append({"test": "", "calls": [], "said": (last or lines)[-1]})

    def call(self, function: Any, /, *args: Any, **keywords: Any) -> Any:
        """Make a call of the file; note it where it takes arrays and returns some."""
        noted = self._of_test(function, args, keywords) if self.test else None
        result = function(*args, **keywords)
        if noted and has_arrays(result):
            self.test["calls"].append(noted)
        return result

    def _of_test(self, function: Any, args: Any, keywords: Any) -> dict[str, Any] | None:
        module = str(getattr(function, "__module__", "")).partition(".")[0]
        if (
            isinstance(function, type)
            or getattr(function, "__name__", "") in MOVE_ARRAYS
            or module in ("numpy", "builtins", "pytest", "test", "tests", "conftest")
            or (module in ("jax", "jaxlib") and "benchmark" not in self.test)
            or self.is_own(function)
            or not has_arrays((args, keywords))
        ):
            return None
        return {
            **self.described(function, args, keywords),
            "of_jax": module in ("jax", "jaxlib"),
            "of_keys": all(map(is_key, arrays_in((args, keywords)))),
        }

    def is_own(self, function: Any) -> bool:
        """Tell whether a function stands in the file of tests."""
        code = getattr(inspect.unwrap(function), "__code__", None)
        return code is not None and os.path.realpath(code.co_filename) == self.file

    def described(self, function: Any, args: Any, keywords: Any) -> dict[str, Any]:
        """Return the place of a function and the sources of its arguments, or `why` not."""
        while isinstance(function, functools.partial):
            args, keywords = (*function.args, *args), {**function.keywords, **keywords}
            function = function.func
        place = self._place(function)
        if place is None and hasattr(
            function, "lower"
        ):  # the test jits it, and so does the harness
            function = getattr(function, "__wrapped__", function)
            place = self._place(function)
        if place is None:
            return {"why": f"it calls {shown(function)}, which is made in the test"}
        try:
            arguments = described_arguments(function, args, keywords)
        except (TypeError, ValueError) as error:
            return {"why": f"{'.'.join(place)} is called with {error}"}
        jitted = hasattr(function, "lower") and hasattr(function, "__wrapped__")
        return {"place": place, "arguments": arguments, "jitted": jitted}

    def _place(self, thing: Any) -> tuple[str, str] | None:
        """Return module and name of a function: the package's public ones, the test's, its own."""
        own, name = str(getattr(thing, "__module__", "")), getattr(thing, "__qualname__", "")
        above = itertools.accumulate(own.split("."), "{}.{}".format)
        for public in (one for one in above if "._" not in one):
            if getattr(sys.modules.get(public), name, None) is thing:
                return public, name
        for module in vars(self.module).values() if self.module else ():
            for known, member in vars(module).items() if isinstance(module, ModuleType) else ():
                if member is thing and not known.startswith("_"):
                    return module.__name__, known
        found: Any = sys.modules.get(own)
        for part in name.split("."):
            found = getattr(found, part, None)
        return (own, name) if found is thing else None


class Benchmark:
    """Stands in for the fixture of pytest-benchmark: makes the call once, and ends the test."""

    stats = None

    def __init__(self, noted_tests: NotedTests) -> None:
        self.noted_tests = noted_tests
        self.extra_info: dict[str, Any] = {}

    def __call__(self, function: Any, /, *args: Any, **keywords: Any) -> None:
        """Note this function, or, where it is the test's own, what that calls."""
        test = self.noted_tests.test
        test |= {"benchmark": True, "calls": []}
        if self.noted_tests.is_own(function):
            function(*args, **keywords)
            test["calls"] = [one for one in test["calls"] if not one["of_jax"]] or test["calls"]
        else:
            test["calls"] = [self.noted_tests.described(function, args, keywords)]
        pytest.skip("benchmarked")

    def pedantic(
        self, target: Any, args: Any = (), kwargs: Any = None, setup: Any = None, **_: Any
    ) -> None:
        """Do the same, with the arguments that `setup` may make."""
        args, kwargs = (setup() if setup else None) or (args, kwargs)
        self(target, *args, **(kwargs or {}))


def described_arguments(function: Any, args: Any, keywords: Any) -> list[dict[str, Any]]:
    """Return each argument's name, whether it is given by keyword and static, and its source.

    A source is in pieces: texts, and in lists of one what may differ from call to call.
    """
    signature = inspect.signature(function)
    bound, kinds, found = signature.bind(*args, **keywords), inspect.Parameter, []
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is kinds.VAR_POSITIONAL:
            each = [("", False, one) for one in value]
        elif kind is kinds.VAR_KEYWORD:
            each = [(key, True, one) for key, one in value.items()]
        else:
            each = [(name, kind is kinds.KEYWORD_ONLY, value)]
        for key, by_keyword, one in each:
            static = one is not None and not has_arrays(one)
            if static and type(one) is list:
                one = tuple(one)  # a static argument has a hash
            try:
                pieces = [[one]] if type(one) in PLAIN else source(one)
            except ValueError as error:
                raise ValueError(f"{error} as {key or name}") from None
            found.append({"name": key, "keyword": by_keyword, "static": static, "pieces": pieces})
    return found


def source(tree: Any) -> list[Any]:
    """Return the source of a tree of arrays, in pieces."""
    jax: Any = sys.modules["jax"]
    if tree is None or type(tree) in PLAIN:
        return [[tree]]
    if type(tree) is dict and all(type(key) is str for key in tree):
        inner = [[f"{json.dumps(key)}: ", *source(one)] for key, one in tree.items()]
        return ["{", *_joined(inner), "}"]
    if type(tree) is list:
        return ["[", *_joined(map(source, tree)), "]"]
    if type(tree) is tuple:
        return ["(", *_joined(map(source, tree)), ",)" if len(tree) == 1 else ")"]
    if not isinstance(tree, jax.Array | numpy.ndarray | numpy.generic):
        raise ValueError(shown(tree))
    if jax.numpy.issubdtype(tree.dtype, jax.dtypes.prng_key):
        name = "key"
    else:
        name = jax.dtypes.canonicalize_dtype(tree.dtype).name
        if tree.shape == () and tree.dtype.kind in "biuf":
            return [f"numpy.{name.replace('bool', 'bool_')}(", [tree.item()], ")"]
    shape = [*_joined([[one]] for one in tree.shape), "," if tree.ndim == 1 else ""]
    return ["spec((", *shape, "), ", [name], ")"]


def _joined(parts: Any) -> list[Any]:
    return [piece for n, part in enumerate(parts) for piece in ([", "] if n else []) + part]


def has_arrays(tree: Any) -> bool:
    """Tell whether a tree has an array; one that is being traced is none."""
    jax: Any = sys.modules.get("jax")  # the tests import it, and may set its variables before
    if jax is None:
        return False
    leaves = jax.tree_util.tree_leaves(tree)
    return bool(arrays_in(tree)) and not any(isinstance(one, jax.core.Tracer) for one in leaves)


def arrays_in(tree: Any) -> list[Any]:
    """Return the arrays of a tree."""
    jax: Any = sys.modules["jax"]
    kinds = jax.Array | numpy.ndarray | numpy.generic
    return [one for one in jax.tree_util.tree_leaves(tree) if isinstance(one, kinds)]


def is_key(array: Any) -> bool:
    """Tell whether an array is a random key, of the new kind or of the old."""
    jax: Any = sys.modules["jax"]
    old = array.dtype == "uint32" and array.shape in ((2,), (4,))
    return old or bool(jax.numpy.issubdtype(array.dtype, jax.dtypes.prng_key))


def shown(thing: Any) -> str:
    """Return what a thing is, for people."""
    kind = type(thing)
    return getattr(thing, "__qualname__", f"a {kind.__module__}.{kind.__qualname__}")


class CallsNoted(ast.NodeTransformer):
    """Has every call of a file made by `NotedTests.call`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Change one call, and those in it."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in LOOK_AROUND:
            return node
        noted = ast.Call(ast.Name(NOTED, ast.Load()), [node.func, *node.args], node.keywords)
        return ast.copy_location(noted, node)


def answer(question: dict[str, str]) -> dict[str, Any]:
    """Run the tests of `file`, or the one that `name` chooses; return them with their calls."""
    file = question["file"]
    noted_tests = NotedTests(file)
    setattr(builtins, NOTED, noted_tests.call)
    get_code = importlib.machinery.SourceFileLoader.get_code

    def noted(loader: Any, fullname: str) -> Any:
        if os.path.realpath(loader.path) != file:
            return get_code(loader, fullname)
        tree = ast.fix_missing_locations(CallsNoted().visit(ast.parse(Path(file).read_bytes())))
        return compile(tree, file, "exec", dont_inherit=True)

    importlib.machinery.SourceFileLoader.get_code = noted  # type: ignore[method-assign, assignment]
    # `addopts` may ask for other processes, or for what only pytest-benchmark knows.
    options = ("--assert=plain", "-p", "no:cacheprovider", "-o", "addopts=", "-W", "ignore")
    pytest.main([file + question["name"], *options], plugins=[noted_tests])
    for test in noted_tests.tests:  # what has random keys alone makes the data for the rest
        test["calls"] = [one for one in test["calls"] if not one.get("of_keys")] or test["calls"]
    return {"tests": noted_tests.tests}


if __name__ == "__main__":
    # What the tests print must not get into the answer.
    answering = os.dup(1)
    os.dup2(2, 1)
    sys.path.insert(0, os.getcwd())  # as `python -m pytest` has it
    line = json.dumps(answer(json.load(sys.stdin)))
    os.write(answering, line.encode())
    os._exit(0)  # threads of the user's must not hold it up
