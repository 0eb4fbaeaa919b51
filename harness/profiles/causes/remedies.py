"""What to do about a cause, in a sentence."""

from __future__ import annotations

import re
from pathlib import PurePath

from harness.profiles.causes.aspects import is_operation, is_transformed
from harness.profiles.causes.difference import Difference
from harness.profiles.causes.differences import AN_ARRAY
from harness.profiles.causes.texts import ANOTHER_OBJECT, library_of
from harness.profiles.model import Built

FILTER_JIT = "equinox.filter_jit"


def eager_remedy(built: Built) -> str:
    """Return what to do about an operation of JAX's that runs by itself."""
    if not built.call_site.file or not built.times("compile"):
        return ""
    library = running_library(built)
    if library:
        return (
            f"It is {library} that runs it: JAX's persistent cache keeps it for the next run "
            "(JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0)."
        )
    if built.function.through and is_operation(built.function):  # a loop with the user's functions
        return "Jit the function that it is in, or define what it is given once, outside."
    if built.function.through:
        return "Jit it once, outside the loop or function that does so, and keep the result."
    if is_transformed(built):
        return "Jit the whole function that is differentiated or batched."
    return "Do it inside the jitted function, or build small arrays with numpy."


def running_library(built: Built) -> str:
    """Return the library that called JAX on behalf of the program; empty if none stood between."""
    if built.call_site.origin != "program" or built.frames[-1].origin != "library":
        return ""
    return library_of(built.frames[-1].file)


def remedy(built: Built, what: Difference) -> str:
    """Return what to do about a difference."""
    name, function = f"`{what.argument}`", f"`{built.function.name}`"
    match what.kind:
        case "new function object":
            return _of_object(built)
        case "static value":
            return _of_static(built, what)
        case "shape":
            return (
                f"Pad {name} to few sizes (a multiple, or buckets), or build once for all sizes "
                "with jax.export and symbolic shapes."
            )
        case "dtype":
            if "key<" in what.before + what.after:
                return "Make all keys in one way: jax.random.key, or jax.random.PRNGKey."
            return f"Give {name} one dtype, e.g. `{what.argument}.astype('{what.before}')`."
        case "weak type":
            return _of_weak(what)
        case "pytree":
            return _of_tree(what)
        case "committed":
            return (
                f"Put {name} where it shall be before the first call (jax.device_put with a device "
                "or sharding commits it), or never."
            )
        case "device":
            return f"Keep {name} on one device; a program is built for each device it runs on."
        case "sharding":
            return f"Give {name} one sharding before the first call, e.g. by jax.device_put."
        case "layout":
            return f"Give {name} one layout; JAX builds a program for each."
        case "configuration":
            return f"Set {name} once, before the first call, or always call under the same context."
        case "donation" | "jit options":
            if built.function.origin == "library":
                return _of_library(built, library_of(built.function.file))
            return f"Jit {function} once, with one set of options."
        case "ahead of time":
            return f"Build {function} with one set of {name}, and keep what `.compile()` returned."
        case _:
            return ""


def derived_remedy(built: Built) -> str:
    """Return what to do about a program that was differentiated or batched outside jit."""
    if built.function.origin == "library":
        return ""
    return "Jit the whole function that is differentiated or batched, e.g. jax.jit(jax.grad(f))."


def _of_library(built: Built, library: str) -> str:
    """Return what can be done about what a library makes anew, from the user's own line."""
    site = built.call_site
    if site.origin != "program":
        return ""
    return (
        f"{library or 'A library'} makes it, used at {PurePath(site.file).name}:{site.line}: make "
        "the object that is used there once, and use it again; where that changes nothing, "
        f"{library or 'the library'} makes a new one in every call."
    )


def _of_object(built: Built) -> str:
    if built.function.origin == "library":
        if built.function.through == FILTER_JIT:
            return "Apply eqx.filter_jit once, outside the loop or function, and keep the result."
        return _of_library(built, library_of(built.function.file))
    if "partial" in built.function.through:
        return (
            "Make the partial and jit it once, outside the loop or function, or pass what it binds "
            "as arguments."
        )
    if "method" in built.function.through:
        return (
            "Each access to a method makes a new object: jit the function itself once, and pass "
            "the instance as an argument (a pytree, or static)."
        )
    return "Define and jit it once, outside the loop or function that makes it."


def _of_static(built: Built, what: Difference) -> str:
    name = f"`{what.argument}`"
    if AN_ARRAY in (what.before, what.after):
        return f"Pass {name} always as an array, or never."
    if what.file:
        library = library_of(what.file)
        if library:
            return _of_library(built, library)
        if what.type == "function":
            return (
                "Define the function once, outside the loop or function that makes it, and pass "
                "what changes in it as an argument."
            )
        return f"Make {name} once, outside the loop or function that makes it."
    if " (object " in what.after:
        return (
            f"Pass the same object as {name}, or give its type, and those of what it holds, "
            "__eq__ and __hash__ by content (a frozen dataclass)."
        )
    if built.function.through == FILTER_JIT:
        return _of_filtered(what)
    if built.function.origin == "library":
        return f"Let {name} take few values."
    if _is_number(what):
        loops = " (with jax.lax.fori_loop, while_loop or scan where it counts steps)"
        loops = loops if "int" in what.type else ""
        return f"Make {name} a dynamic argument{loops}, or let it take few values."
    if what.type == "bool":
        return (
            f"Make {name} a dynamic argument (with jnp.where or jax.lax.cond), or let it take few "
            "values."
        )
    return f"Let {name} take few values."  # strings, functions, shapes: no array can stand for them


def _of_filtered(what: Difference) -> str:
    name = f"`{what.argument}`"
    if not _is_number(what):
        return f"Let {name} take few values: eqx.filter_jit takes all that is no array as static."
    advice = f"Make {name} an array, e.g. `jnp.asarray({what.after})`"
    if "." not in what.after and "e" not in what.after:
        advice += ", if it is only computed with (no size, no count that Python needs)"
    return f"{advice}: eqx.filter_jit takes all that is no array as static."


def _is_number(what: Difference) -> bool:
    return re.match(r"(np\.\w+\()?-?\d", what.after) is not None


def _of_weak(what: Difference) -> str:
    scalar = next((t for t in (what.before, what.after) if t.startswith("a Python")), "")
    if scalar:
        array = next((t for t in (what.before, what.after) if t != scalar), "")
        dtype = array.rpartition(" ")[2] or "float32"
        return f"Pass `{what.argument}` always as an array, e.g. jnp.{dtype}(...), or never."
    return f"Give `{what.argument}` an explicit dtype where it is made."


def _of_tree(what: Difference) -> str:
    if what.before in ("by position", "by keyword"):
        return f"Pass `{what.argument}` always {what.before}."
    if what.after == ANOTHER_OBJECT:
        return (
            f"Make what `{what.argument}` holds (an optimizer, a model) once, outside the loop or "
            "function that makes it, and use it again."
        )
    return (
        f"Give `{what.argument}` the same structure in every call: keys, types of containers, "
        "None, fixed fields of classes."
    )
