"""Import a user's function and trace it, in a process of its own; run as a script, by its path.

Reads a question as JSON from standard input and answers with one line of JSON on standard output.
It imports what it is asked for first, then JAX.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import sys
from typing import Any

from harness.jaxhooks import jax_names
from harness.records.failure import place


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return what was found: `error` and the `stage` it happened at, or which `tries` trace.

    `question` has `module`, `name` (dotted), `x64`, and `tries`: lists of (shape, dtype), of which
    the first must trace; or `inputs`, the place of a function that makes the arguments. `last` is a
    folder to search for modules after all others. `backend` tells whether the import alone woke one
    of JAX's backends, `beside` whether a module is found in that folder only, `hidden` which
    modules are not what their dotted names mean: `from .kepler import kepler` hides the first.
    """
    places = [question["module"], *filter(None, [question["inputs"].partition(":")[0]])]
    tops = {place.partition(".")[0] for place in places}
    beside = any(importlib.util.find_spec(top) is None for top in tops)
    sys.path.append(question["last"])
    answered = _answer(question)
    hidden = [one for one in places if one in sys.modules and _by_name(one) is not sys.modules[one]]
    return {**answered, "beside": beside, "hidden": hidden}


def _by_name(module: str) -> Any:
    top, *rest = module.split(".")
    meant: Any = sys.modules[top]
    for name in rest:
        meant = getattr(meant, name, None)
    return meant


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    if question["x64"]:
        os.environ["JAX_ENABLE_X64"] = "1"
    try:
        target: Any = importlib.import_module(question["module"])
    except BaseException as error:  # a user's module may even exit
        return {"stage": "import", "error": _text(error)}
    try:
        target = functools.reduce(getattr, question["name"].split("."), target)
    except AttributeError as error:
        return {"stage": "attribute", "error": _text(error)}
    if not callable(target):
        return {"stage": "callable", "error": f"it is of type {type(target).__name__}"}
    jax = jax_names.public()
    backend = bool(jax_names.bridge().backends_are_initialized())
    if question["inputs"]:
        return _traced_with(jax, target, question["inputs"], backend)
    first, *others = question["tries"]
    # A spec has a hash: as a static argument it would be a value.
    # One that has a default need not be given.
    count, places = len(first), jax_names.static_arguments(target)[0]
    static = sorted({1 + place % count for place in places if -count <= place < count})
    if static:
        return {"stage": "static", "error": ", ".join(map(str, static))}
    try:
        specs = [_abstract(jax, *one) for one in first]
    except TypeError as error:
        return {"stage": "dtype", "error": _text(error)}
    try:
        jax.eval_shape(target, *specs)
    except Exception as error:  # whatever the function, or JAX, raises
        return {"stage": "trace", "error": _text(error) + place(error)}
    traced = []
    for number, other in enumerate(others, start=1):
        try:
            jax.eval_shape(target, *[_abstract(jax, *one) for one in other])
        except Exception:  # a size that cannot be changed is no fault
            continue
        traced.append(number)
    return {"traced": traced, "backend": backend}


def _traced_with(jax: Any, function: Any, inputs: str, backend: bool) -> dict[str, Any]:
    module, _, name = inputs.partition(":")
    try:
        maker: Any = functools.reduce(getattr, name.split("."), importlib.import_module(module))
        made = maker()
    except BaseException as error:  # a user's function may even exit
        return {"stage": "inputs", "error": _text(error) + place(error)}
    from harness.workload.inputs import abstract  # it imports JAX

    arguments = made if isinstance(made, tuple) else (made,)
    try:
        abstract(arguments, inputs, any_leaf=True)
    except Exception as error:
        return {"stage": "wide", "error": str(error).partition(";")[0]}
    try:
        if hasattr(function, "lower") and not hasattr(function, "trace"):
            function.lower(*arguments)  # `equinox.filter_jit` takes more than arrays
        else:
            jax.eval_shape(function, *arguments)
    except Exception as error:  # whatever the function, or JAX, raises
        return {"stage": "trace", "error": _text(error) + place(error)}
    return {"traced": [], "backend": backend}


def _abstract(jax: Any, shape: list[int], dtype: str) -> Any:
    if dtype == "key":
        kind = jax.eval_shape(lambda: jax.random.key(0)).dtype
    else:
        kind = jax.numpy.dtype(dtype)
    return jax.ShapeDtypeStruct(tuple(shape), kind)


def _text(error: BaseException) -> str:
    """Return the type and the first paragraph of an error, on one line."""
    paragraph = str(error).strip().split("\n\n")[0]
    return f"{type(error).__name__}: {' '.join(paragraph.split())}".rstrip(": ")


if __name__ == "__main__":
    # What the imported modules print must not get into the answer.
    answering = os.dup(1)
    os.dup2(2, 1)
    line = json.dumps(answer(json.load(sys.stdin)))
    os.write(answering, line.encode())
    os._exit(0)  # threads of the user's must not hold it up
