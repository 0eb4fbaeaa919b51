"""Where a build was asked for: frames, whose code they are, and what a function is wrapped in."""

from __future__ import annotations

import functools
import glob
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from harness.jaxhooks.events import Around, Frame, Origin
from harness.jaxhooks.jax_names import KERNELS, LOOPS, PMAP_FILE

DEEPEST = 40
"""Frames that are kept of a stack: the innermost."""

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARIES = tuple(
    os.path.join(path, "")
    for path in {
        sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)
_SITES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))
_PACKAGE = re.compile(r"[/\\](site|dist)-packages[/\\](?!numpy[/\\])")
_GENERATED = re.compile(
    r"<(frozen |@beartype\(|c?attrs generated |decorator-gen|lambdifygenerated)"
)
"""Begins the files of code that Python, beartype, attrs, cattrs, `decorator` and SymPy write."""

_DATACLASS_METHODS = "__create_fn__.<locals>."
_IMPORT = "<frozen importlib"


@functools.cache
def origin_of(file: str) -> Origin | None:
    """Tell whose code a file is; None for the profile's own, Python's, and generated code.

    JAX is where this process imported it from, which may be a checkout or behind a link.
    """
    if _GENERATED.match(file) or file.startswith(_HERE):
        return None
    if file.startswith(_of_jax()):
        return "jax"
    if file.startswith(_LIBRARIES) or any(site in file for site in _SITES):
        return "library"
    folders = (os.path.join(folder, "") for folder in sys.path if folder)
    inside = ((folder, file[len(folder) :]) for folder in folders if file.startswith(folder))
    installed = any(rest.split(os.sep)[0] in _installed(folder) for folder, rest in inside)
    return "library" if installed else "program"


def owner_of(code: CodeType) -> Origin | None:
    """Tell whose a function is; None also for methods that dataclasses write."""
    if code.co_qualname.startswith(_DATACLASS_METHODS):
        return None
    return origin_of(code.co_filename)


@functools.cache
def _installed(folder: str) -> set[str]:
    """Return what pip put into a folder that is no environment's (`pip install --target`)."""
    names: set[str] = set()
    for record in glob.glob(os.path.join(glob.escape(folder), "*.dist-info", "RECORD")):
        with open(record, encoding="utf-8") as lines:
            names.update(re.split("[/,]", line, maxsplit=1)[0] for line in lines)
    return names


@functools.cache
def _of_jax() -> tuple[str, ...]:
    """Return the folders of JAX's packages, as Python names them and without links."""
    packages = (sys.modules.get(name) for name in ("jax", "jaxlib", "jax_plugins"))
    places = {str(place) for package in packages for place in getattr(package, "__path__", ())}
    places |= {os.path.realpath(place) for place in places}
    return tuple(os.path.join(place, "") for place in places)


class Places(NamedTuple):
    """Frames outside JAX and this package, as quickly as they can be noted.

    Their lines are left for later: Python counts them from a function's begin each time.
    """

    key: tuple[int, ...] = ()
    """Addresses of code, and instructions in it: quickly hashed."""
    codes: tuple[CodeType, ...] = ()
    """What the addresses are of, the innermost first."""

    def frames(self) -> tuple[Frame, ...]:
        """Return the frames as they are written down, the outermost first."""
        places = zip(self.codes, self.key[1::2], strict=True)
        innermost_first = [
            Frame(
                code.co_filename,
                line_of(code, instruction),
                code.co_qualname,
                origin_of(code.co_filename) or "library",
            )
            for code, instruction in places
        ]
        return tuple(reversed(innermost_first))


def places(frame: FrameType | None) -> Places:
    """Return the frames outside JAX and this package, the innermost first."""
    key: list[int] = []
    codes: list[CodeType] = []
    while frame is not None and len(codes) < DEEPEST:
        code = frame.f_code
        if owner_of(code) in ("program", "library"):
            codes.append(code)
            key += (id(code), frame.f_lasti)
        frame = frame.f_back
    return Places(tuple(key), tuple(codes))


def kernel_of(frame: FrameType | None, stage: str) -> CodeType | None:
    """Return what JAX's lowering has called that is none of its own rules, the outermost function.

    `stage` is the function of ours below which the lowering is.
    """
    outermost = None
    while frame is not None:
        code, file = frame.f_code, frame.f_code.co_filename
        whose = owner_of(code)
        if whose is None and code.co_name == stage:
            return outermost
        if whose == "jax":
            own = not any(folder in file for folder in KERNELS)
        else:  # Python's own modules and NumPy work for whoever calls them
            own = whose != "program" and not _PACKAGE.search(file)
        if file.startswith(_IMPORT):  # a module that is imported only now
            outermost = None
        outermost = outermost if own else code
        frame = frame.f_back
    return None


def comparison_of(frame: FrameType | None, stage: str) -> CodeType | None:
    """Return the `__eq__` of a static value that JAX has called in the stage of ours.

    jax 0.10 compares each new static value with all earlier ones of the function.
    """
    while frame is not None and frame.f_code.co_name != stage:
        code, frame = frame.f_code, frame.f_back
        caller = frame.f_code if frame is not None else code
        compares = code.co_name == caller.co_name == "__eq__"
        if compares and owner_of(code) != "jax" == owner_of(caller):
            return code
    return None


def outside_jax(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the program or a library."""
    while frame is not None and owner_of(frame.f_code) not in ("program", "library"):
        frame = frame.f_back
    return frame


def loop_of(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of a function that is one of JAX's loops."""
    while frame is not None and not frame.f_code.co_filename.endswith(LOOPS):
        frame = frame.f_back
    return frame


JITTED_AT = "_harness_jitted_at"
"""An attribute of what `jax.jit` returned: the file and line of that call."""


def mark_jitted(jitted: Any, frame: FrameType | None) -> None:
    """Note in a jitted function where `jax.jit` was called for it."""
    frame = outside_jax(frame)
    if frame is not None:
        setattr(jitted, JITTED_AT, (frame.f_code.co_filename, frame.f_lineno))


def line_of(code: CodeType, instruction: int) -> int:
    """Return the line of an instruction, by its offset; of what has none, the function's first."""
    for begin, end, line in code.co_lines():
        if begin <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


def code_of(function: Any) -> CodeType | None:
    """Return the code that a jitted function runs: beneath wrappers, partials, methods, objects.

    None where there is none to be found: something compiled, or an object that raises when it is
    looked at.
    """
    try:
        for _, beneath in _wrappers(function):
            function = beneath
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            return code
        called = type(function).__call__ if callable(function) else None
        return code_of(called) if isinstance(called, FunctionType) else None
    # Attributes of an object of the user's own may do anything.
    except Exception:
        return None


def is_jitted_by_jax(function: Any) -> bool:
    """Return whether it is JAX that jits this function of its own, and not who uses JAX.

    `jnp.dot` is jitted where it is defined: what stands under its name is around it. What somebody
    gives to `jax.jit` is what stands under its name, or a new wrapper around that.
    """
    try:
        if getattr(function, "_apply_primitive", False):
            return True
        plain = getattr(function, "__func__", function)
        if plain.__name__.startswith("_"):  # nobody else's to use
            return True
        value: Any = sys.modules[plain.__module__]
        for name in plain.__qualname__.split("."):
            value = getattr(value, name)
        if value is plain:
            return False
        for _ in range(50):
            value = getattr(value, "__wrapped__", None)
            if value is plain:
                return True
    except Exception:  # see code_of; or it was made within a function, and stands under no name
        pass
    return not around(function)


def given_to_pmap(function: Any) -> Any:
    """Return what `jax.pmap` was given, where it is what jitted this function; else the function.

    It jits a `_fun` of its own, a new one for each structure of arguments.
    """
    try:
        if function.__name__ != "_fun":
            return function
        inner = function.__wrapped__ if hasattr(function, "__wrapped__") else function
        given = _pmapped(inner)
    except Exception:  # see code_of
        return function
    return function if given is None else given


def _pmapped(function: Any) -> Any:
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or code.co_name != "_fun":
        return None
    if not code.co_filename.replace("\\", "/").endswith(PMAP_FILE):
        return None
    cells = dict(zip(code.co_freevars, function.__closure__, strict=True))
    return cells["fun"].cell_contents.f


def column_of(code: CodeType) -> int:
    """Return the column in which the first operation of a function's first line begins."""
    line = code.co_firstlineno
    columns = (column for at, _, column, _ in code.co_positions() if at == line and column)
    return next(columns, 0)


def around(function: Any) -> tuple[Around, ...]:
    """Return what stands between a jitted function and its code, the outermost first.

    For an operation of JAX's that runs by itself, the functions that it was given (the body of a
    loop), JAX's own left out.
    """
    try:
        if getattr(function, "_apply_primitive", False):
            return tuple(_given(function))
        return tuple(Around(name) for name, _ in _wrappers(function))
    except Exception:  # see code_of
        return ()


def _wrappers(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name of each wrapper, the outermost first, and what lies beneath it."""
    for _ in range(50):
        if isinstance(function, functools.partial):
            name, function = "partial", function.func
        elif getattr(function, "__wrapped__", None) is not None:
            name, function = _wrapper_name(function), function.__wrapped__
        elif hasattr(function, "__func__"):
            name, function = "method", function.__func__
        elif (given := _pmapped(function)) is not None:
            name, function = "pmap", given
        else:
            return
        yield name, function


def _wrapper_name(function: Any) -> str:
    code = getattr(function, "__code__", None)
    if code is not None and code.co_name == "reraise_with_filtered_traceback":
        # JAX puts it around all it exports, and takes the name of what lies beneath.
        cells = dict(zip(code.co_freevars, function.__closure__, strict=True))
        function = cells["fun"].cell_contents
        code = getattr(function, "__code__", None)
    return code.co_name if code is not None else type(function).__name__


def _given(function: Any) -> Iterator[Around]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for value in dict(cells)["params"].cell_contents.values():
        for one in value if isinstance(value, tuple) else (value,):
            debug = getattr(one, "debug_info", None) or getattr(one, "_debug_info", None)
            name, file, line = source_of(debug)
            if code := code_of(getattr(one, "callback_func", None)):
                name, file, line = code.co_qualname, code.co_filename, code.co_firstlineno
            if name and origin_of(file) != "jax":
                yield Around(name, file, line)


def source_of(debug: Any) -> tuple[str, str, int]:
    """Return the function, file and line that JAX's debug information names; empty without."""
    source = str(getattr(debug, "func_src_info", "") or "")
    name, _, where = source.rpartition(" at ")
    file, _, line = where.rpartition(":")
    return (name, file, int(line)) if name and line.isdigit() else ("", "", 0)


def name_of(function: Any) -> str:
    """Return a function's own name, empty where it has none."""
    try:
        return str(getattr(function, "__name__", "") or "")
    except Exception:  # see code_of
        return ""


def parameter_name(signature: Any, number: int) -> str:
    """Return a positional argument's name, from the function's signature."""
    if signature is not None:
        for index, parameter in enumerate(signature.parameters.values()):
            if parameter.kind is parameter.VAR_POSITIONAL:
                return f"{parameter.name}[{number - index}]"
            if parameter.kind is parameter.KEYWORD_ONLY:
                break
            if index == number:
                return str(parameter.name)
    return f"args[{number}]"


def cell_name(file: str) -> str:
    """Return the name of a cell, as IPython has it in tracebacks: `In[3]`; else the file itself."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    try:
        kind, name = shell.compile.format_code_name(file)
    except (AttributeError, TypeError, ValueError):  # no notebook, an old one, or no cell's file
        return file
    return str(name) if kind == "Cell" else file
