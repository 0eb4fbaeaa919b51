"""Workloads for what tests call: the tests run once, and their calls become declarations."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.declare.axes import RESERVED_AXES
from harness.errors import UsageError
from harness.scaffold import contents
from harness.scaffold.function import ask, seen_by_asv

Call = Mapping[str, Any]
"""A call as `noted.py` notes it, with the test's name, case and parameters."""

COMMENT = "Shapes, dtypes and numbers are those of the test; the data in arrays is random."
NOTHING = "it calls nothing with arrays that is not in the file of tests"
ADVICE = "put what is to be measured into a function of your package"
FOUND = "python -m pip install -e . here, or export ASV_PYTHONPATH=$PWD"
WIDE = re.compile(r"\b(u?int64|float64|complex128)\b")


@dataclass(frozen=True)
class Adopted:
    """What became of the tests of a file."""

    module: str
    text: str
    """Of the module; empty if no test could be adopted."""
    functions: Mapping[str, str]
    """The workloads, and what each measures of which test."""
    left_out: Mapping[str, str]
    """The other tests, and why."""
    wakes_backend: bool
    """Whether importing the functions starts a backend of JAX's, which does not survive forking."""


def adopt(test: str, folder: Path) -> Adopted:
    """Run the tests of `FILE` or `FILE::TEST` once, and declare workloads for what they call."""
    path, colons, name = test.partition("::")
    file = Path(path).resolve()
    if not file.is_file():
        raise UsageError(f"{path} is no file. Name a file of tests, or one of them: FILE::TEST.")
    question = {"file": str(file), "name": colons + name}
    tests = ask("noted.py", question, folder, os.environ, f"{test}: running it with pytest")
    if not tests["tests"]:
        raise UsageError(f"{test}: pytest finds no test there.")
    left_out = _without_calls(tests["tests"], path)
    classes: dict[str, str] = {}
    functions: dict[str, tuple[str, str]] = {}
    imported: dict[str, set[str]] = {}
    for of_tests, function, calls in _by_function(tests["tests"]):
        of_test = ", ".join(of_tests)
        label = _label(of_tests[0], function.rpartition(".")[2], classes)
        try:
            classes[label] = _declared(label, function, calls)
        except UsageError as error:
            left_out[of_test] = str(error)
            continue
        functions[label] = of_test, function
        modules = {call["place"][0] for call in calls}
        imported[label] = {*modules, *(["numpy"] if "numpy." in classes[label] else [])}
    sources = {one: contents.text(test, imported[one], [classes[one]]) for one in classes}
    checked = ask("traced.py", sources, folder, seen_by_asv(), f"{test}: tracing it")
    for label, why in checked["errors"].items():
        of_test, function = functions.pop(label)
        lost = f"; asv does not find it: {FOUND}" if why.startswith("ModuleNotFound") else ""
        left_out[of_test] = f"{function}: {why.rstrip('.')}{lost}"
    name = name.rpartition("::")[2].partition("[")[0] or file.stem
    name = re.sub(r"^_*(test_?)?|_?test$", "", name)
    name = name if name.isidentifier() else "adopted"
    used = {one for label in functions for one in imported[label]}
    text = contents.text(name, used, [classes[label] for label in functions])
    named = {label: f"{function}, of {test}" for label, (test, function) in functions.items()}
    return Adopted(name, text if named else "", named, left_out, checked["backend"])


def _without_calls(tests: Sequence[Call], path: str) -> dict[str, str]:
    """Return the tests of which nothing can be measured, with the reason."""
    left_out = {}
    for one in tests:
        why = [call.get("why") for call in one["calls"]]
        if not why or all(why):
            found = one["said"] or f"{next(iter(why), NOTHING)}; {ADVICE}"
            left_out[one["test"] or path] = found
    return left_out


def _by_function(tests: Sequence[Call]) -> Iterator[tuple[list[str], str, list[Call]]]:
    """Yield the tests that call a function alike, the function, and the calls that differ.

    Calls with other static arguments are other workloads: each case of one has the same.
    """
    found: dict[tuple[str, ...], list[Call]] = {}
    for test in tests:
        for call in test["calls"]:
            if "why" not in call:
                static = [one["name"] for one in call["arguments"] if one["static"]]
                key = (test["test"], ".".join(call["place"]), *static)
                calls = found.setdefault(key, [])
                if all(call["arguments"] != other["arguments"] for other in calls):
                    calls.append({**test, **call})
    alike: dict[tuple[str, str], tuple[list[str], str, list[Call]]] = {}
    for (of_test, function, *_), calls in found.items():
        key = function, json.dumps([call["arguments"] for call in calls])
        alike.setdefault(key, ([], function, calls))[0].append(of_test)
    yield from alike.values()


def _label(test: str, function: str, taken: Mapping[str, str]) -> str:
    words = [one for one in re.split(r"[\W_]+", test) if one.lower() not in ("", "test")]
    label = contents.class_name("_".join(words))
    label = label if label.isidentifier() else f"Test{label}"
    longer = label + contents.class_name(function)
    names = itertools.chain([label, longer], (f"{longer}{n}" for n in itertools.count(2)))
    return next(one for one in names if one not in taken)


def _declared(name: str, function: str, calls: Sequence[Call]) -> str:
    """Return the text of a class; its axes are the test's parameters, if they tell all calls."""
    sweep, static, axes, inputs = _by_parameters(calls) or _by_case(calls)
    attributes = []
    if sweep:
        inner = ", ".join(f'"{axis}": {values}' for axis, values in sweep.items())
        attributes.append(f"sweep = {{{inner}}}")
    if static:
        end = "," if len(static) == 1 else ""
        attributes.append(f"static = ({', '.join(map(json.dumps, static))}{end})")
    if WIDE.search(f"{sweep} {inputs}"):
        attributes.append(contents.X64)
    about = f"{function}, as {calls[0]['test']} calls it"
    return contents.declaration(name, about, attributes, COMMENT, axes, inputs, function)


Declared = tuple[dict[str, str], list[str], list[str], str]
"""The sources of the axes' values, which are static, what `inputs` takes, and what it does."""


def _by_parameters(calls: Sequence[Call]) -> Declared | None:
    """Return what is swept where what differs between the calls are parameters of the test."""
    first = calls[0]
    if len({json.dumps([_skeleton(call), sorted(call["params"])]) for call in calls}) > 1:
        return None
    params = {name: [_text(call["params"][name]) for call in calls] for name in first["params"]}
    texts: list[str] = []
    for column in zip(*(map(_text, _values(call)) for call in calls), strict=True):
        same = [column[0]] if len(set(column)) == 1 else []
        same += [name for name, values in params.items() if values == list(column)]
        if not same:
            return None
        texts.append(same[0])
    used = [name for name in params if name in texts]
    points = set(zip(*(params[name] for name in used), strict=True))
    if used and len(points) != math.prod(len(set(params[name])) for name in used):
        return None
    _, _, static = _written(first, iter(texts))
    renamed = {name: f"{name}_" for name in used if name in RESERVED_AXES}
    renamed |= {text: name for name, text in static.items() if text in used}
    values, call, static = _written(first, (renamed.get(text, text) for text in texts))
    axes = {renamed.get(name, name): list(dict.fromkeys(params[name])) for name in used}
    axes |= {name: [text] for name, text in static.items() if name not in axes}
    sweep = {name: f"[{', '.join(texts)}]" for name, texts in axes.items()}
    taken = [name for name in sweep if re.search(rf"\b{name}\b", " ".join(values))]
    return sweep, list(static), taken, contents.returned(values, call)


def _by_case(calls: Sequence[Call]) -> Declared:
    """Return what is swept where each case of the test has arguments of its own."""
    cases: dict[str, str] = {}
    names: list[str] = []
    for number, call in enumerate(calls, start=1):
        values, function, static = _written(call, map(_text, _values(call)))
        names = list(static)
        end = "," if len(values) == 1 and not function else ""
        given = {"given": f"{function}({', '.join(values)}{end})", **static}
        inner = ", ".join(f'"{name}": {text}' for name, text in given.items())
        label = call["case"] if call["case"] and call["case"] not in cases else str(number)
        cases[label] = f"        {json.dumps(label)}: {{{inner}}},\n"
    sweep = {"test": f"{{\n{''.join(cases.values())}    }}"}
    return sweep, names, ["given"], "        return given"


def _written(call: Call, texts: Iterator[str]) -> tuple[list[str], str, dict[str, str]]:
    """Return the sources of a call's arrays, the function that holds them, and static arguments."""
    values, static = [], {}
    by_keyword = False
    for one in call["arguments"]:
        text = "".join(piece if isinstance(piece, str) else next(texts) for piece in one["pieces"])
        is_static = one["static"] and not call["jitted"]
        by_keyword = by_keyword or one["keyword"] or is_static
        if by_keyword and not one["name"]:
            raise UsageError("it is called with values among *args that are no arrays")
        if is_static:
            static[one["name"]] = text
        else:
            values.append(f"{one['name']}={text}" if by_keyword else text)
    call_name = "arguments" if any(re.match(r"\w+=", value) for value in values) else ""
    if len(values) == 1 and values[0].startswith("(") and not call_name:
        values = [f"({values[0]},)"]
    return values, call_name, static


def _values(call: Call) -> list[Any]:
    """Return what may differ in the arguments of a call."""
    pieces = [piece for one in call["arguments"] for piece in one["pieces"]]
    return [piece[0] for piece in pieces if not isinstance(piece, str)]


def _skeleton(call: Call) -> list[Any]:
    """Return what may not."""
    return [
        {**one, "pieces": [piece if isinstance(piece, str) else None for piece in one["pieces"]]}
        for one in call["arguments"]
    ]


def _text(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return json.dumps(value) if isinstance(value, str) else repr(value)
