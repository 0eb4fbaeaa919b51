"""Time a program's first step, and answer it from what was shipped.

`jax.jit` makes what it always makes, inside of an object that sees the first call outside of a
trace. That call is timed until its results are there. Where a job names its function, the function
is shipped before the call, or the call is answered by what was shipped, as if the program's source
loaded it; the function itself is then called as well, for the program and to compare. All later
calls are the program's own.

In place of `harness.ship.programs`, whose cases are known beforehand, this ships what a program
passes: static arguments, and trees whose fixed fields hold models, optimisers and functions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import json
import math
import pickle
import re
import time
import types
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.watch import jax_names
from harness.watch.replacements import error_text

VARIABLE = "HARNESS_FIRST_STEP"
"""The variable that has the file of the job."""

SERIALIZE = "jax.experimental.serialize_executable"

STEPS, RESULTS = "steps.jsonl", "results"
"""The files in a job's folder: a line for each first call; of one that was answered by what was
shipped, the leaves of the function's own result and of the answer."""


@dataclass(frozen=True)
class StepJob:
    """What a process is to do, as JSON.

    Attributes:
        folder: Where it writes, and where what was shipped lies.
        function: Whose call is looked at; empty for every one's, which are only timed.
        form: What answers the call: `jit`, the function, or one of `FORMS`.
        makes: Whether it makes all forms before the call.
    """

    folder: str
    function: str = ""
    form: str = "jit"
    makes: bool = False


@dataclass
class FirstStep:
    """The first call of a function.

    Attributes:
        name: The function's.
        entered_ns: When the program called it, on `time.monotonic_ns`.
        before: JAX's events until then, by kind.
        directory: The persistent cache's at this moment; empty without one.
        call_s: Seconds until all of its results were there.
        within: JAX's events in the call, by kind.
        compile_s: Seconds that all programs until its end took to compile, or to load.
        made: Bytes of each form that was made.
        reasons: Why a form could not be made, or did not answer.
    """

    name: str
    entered_ns: int
    before: dict[str, int]
    directory: str
    call_s: float = 0.0
    within: dict[str, int] = field(default_factory=dict)
    compile_s: float = 0.0
    made: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def follow(path: str) -> None:
    """See to it that this process does a job; JAX was imported, and has jitted nothing yet."""
    job = StepJob(**json.loads(Path(path).read_text()))
    jax = jax_names.public()
    follower = _Follower(job, jax.jit)
    jax_names.listen(follower.heard, follower.heard)
    jax_names.hide(__file__)

    @functools.wraps(jax.jit)
    def jit(*given: Any, **options: Any) -> Any:
        return follower.jit(*given, **options)

    jax.jit = jit


class _Follower:
    """What a process has seen of its job."""

    def __init__(self, job: StepJob, real: Callable[..., Any]) -> None:
        self.job = job
        self.real = real
        self.counts: Counter[str] = Counter()
        self.compile_s = 0.0
        self.over = False

    def heard(self, event: str, *spent_s: float, **about: Any) -> None:
        """Take one of JAX's events."""
        kind = jax_names.DURATIONS.get(event) or jax_names.CACHE_EVENTS.get(event)
        if kind is not None:
            self.counts[kind] += 1
            self.compile_s += sum(spent_s) if kind == "compile" else 0.0

    def jit(self, fun: Any = None, /, *rest: Any, **options: Any) -> Any:
        """Stand for `jax.jit`."""
        if fun is None:
            return functools.partial(self.jit, *rest, **options)
        jitted = self.real(fun, *rest, **options)
        name = getattr(jitted, "__name__", "")
        wanted = self.job.function in ("", name) and not self.over
        return _FirstCall(jitted, name, self) if wanted else jitted

    def call(self, name: str, jitted: Any, args: Any, kwargs: Any) -> Any:
        """Make the first call of a function, and note it."""
        entered_ns, before, before_s = time.monotonic_ns(), self.counts.copy(), self.compile_s
        job, jax = self.job, jax_names.public()
        self.over = bool(job.function)
        step = FirstStep(name, entered_ns, before=dict(before), directory=_directory())
        if job.makes:
            self._make(step, jitted, args, kwargs)
        kept = None
        if job.form != "jit":  # the call may donate them
            with _nothing_stored():
                kept = jax.tree.map(
                    lambda leaf: leaf.copy() if isinstance(leaf, jax.Array) else leaf,
                    (args, kwargs),
                )
        at, at_s, begin_ns = self.counts.copy(), self.compile_s, time.monotonic_ns()
        try:
            result = jax.block_until_ready(self._answer(jitted, args, kwargs))
        except Exception as error:
            if kept is None:
                raise
            step.reasons[job.form] = error_text(error)  # as in `_make`
            result = None
        step.call_s = (time.monotonic_ns() - begin_ns) / 1e9
        step.within = dict(self.counts - at)
        step.compile_s = before_s + self.compile_s - at_s
        if kept is not None:
            with _nothing_stored():
                shipped, result = result, jitted(*kept[0], **kept[1])
            both = pickle.dumps((_plain(result), _plain(shipped)))
            (Path(job.folder) / RESULTS).write_bytes(both)
        with (Path(job.folder) / STEPS).open("a") as file:
            file.write(json.dumps(dataclasses.asdict(step)) + "\n")
        return result

    def _make(self, step: FirstStep, jitted: Any, args: Any, kwargs: Any) -> None:
        for name, (make, _) in FORMS.items():
            try:
                stored = make(jitted, args, kwargs)
                step.made[name] = (Path(self.job.folder) / name).write_bytes(stored)
            # JAX, pickle and the program's own types refuse by exceptions of many kinds.
            except Exception as error:
                step.reasons[name] = reason_of(error)

    def _answer(self, jitted: Any, args: Any, kwargs: Any) -> Any:
        if self.job.form not in FORMS:
            return jitted(*args, **kwargs)
        stored = (Path(self.job.folder) / self.job.form).read_bytes()
        return FORMS[self.job.form][1](stored, *_split(jitted, args, kwargs), self.real)


class _FirstCall:
    """A jitted function whose first call is looked at."""

    def __init__(self, jitted: Any, name: str, follower: _Follower) -> None:
        functools.update_wrapper(self, jitted)
        self._jitted, self._name, self._follower = jitted, name, follower
        self._seen = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._seen or self._follower.over or jax_names.tracing():
            return self._jitted(*args, **kwargs)
        self._seen = True
        return self._follower.call(self._name, self._jitted, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_jitted"], name)


def _nothing_stored() -> Any:
    """Keep what is compiled for us alone out of the cache, which is part of what is shipped."""
    return jax_names.module("config").persistent_cache_min_compile_time_secs(math.inf)


def _directory() -> str:
    enabled = jax_names.setting("enable_compilation_cache")
    return str(jax_names.setting("compilation_cache_dir") or "") if enabled else ""


def _plain(result: Any) -> list[Any]:
    """Return a result's leaves, those of this process, as NumPy's arrays; PRNG keys as data."""
    jax = jax_names.public()
    arrays = [leaf for leaf in jax.tree.leaves(result) if isinstance(leaf, jax.Array)]
    leaves = [leaf for leaf in arrays if leaf.is_fully_addressable]
    for number, leaf in enumerate(leaves):
        if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            leaves[number] = jax.random.key_data(leaf)
    return [jax.device_get(leaf) for leaf in leaves]


# --- what a function is shipped as ----------------------------------------------------------------


def _make_executable(jitted: Any, args: Any, kwargs: Any) -> bytes:
    compiled = jitted.lower(*args, **kwargs).compile()
    payload, _, out_tree = jax_names.public(SERIALIZE).serialize(compiled)
    leaves = jax_names.public().tree.leaves((compiled.input_shardings, compiled.output_shardings))
    devices = {device.id for sharding in leaves for device in sharding.device_set}
    return pickle.dumps((payload, _packed(_split(jitted, args, kwargs), out_tree), devices))


def _call_executable(stored: bytes, args: Any, kwargs: Any, static: Any, jit: Any) -> Any:
    payload, out_tree, ids = pickle.loads(stored)
    in_tree = jax_names.public().tree.structure((args, kwargs))
    devices = [one for one in jax_names.public().devices() if one.id in ids]
    loaded = jax_names.public(SERIALIZE).deserialize_and_load(
        payload,
        in_tree,
        _unpacked((args, kwargs, static), out_tree),
        execution_devices=devices or jax_names.public().devices()[:1],
    )
    return loaded(*args, **kwargs)


def _make_export(jitted: Any, args: Any, kwargs: Any) -> bytes:
    made: Any = jax_names.public("jax.export").export(jitted)(*args, **kwargs)
    structure = jax_names.public().tree.structure
    # Its own form of trees knows only types that were registered with it.
    flat = dataclasses.replace(
        made,
        in_tree=structure(((0,) * made.in_tree.num_leaves, {})),
        out_tree=structure([0] * made.out_tree.num_leaves),
    )
    infos = jax_names.public().tree.leaves(jitted.lower(*args, **kwargs).args_info)
    donated = [number for number, info in enumerate(infos) if info.donated]
    trees = _packed(_split(jitted, args, kwargs), made.out_tree)
    return pickle.dumps((bytes(flat.serialize()), trees, donated))


def _call_export(stored: bytes, args: Any, kwargs: Any, static: Any, jit: Any) -> Any:
    program, out_tree, donated = pickle.loads(stored)
    leaves = jax_names.public().tree.leaves((args, kwargs))
    call = jax_names.public("jax.export").deserialize(bytearray(program)).call
    result = jit(call, donate_argnums=donated)(*leaves)
    return jax_names.public().tree.unflatten(_unpacked((args, kwargs, static), out_tree), result)


_REASONS = {
    "flatbuffers": "the package 'flatbuffers' is not installed, and jax.export needs it to "
    "serialise: pip install flatbuffers",
    "host_callback|emit_python_callback": "it calls Python back (`jax.debug.print`, "
    "`pure_callback`, `equinox.error_if`, ...), which no file can hold",
}
"""What it means where some words stand in an error."""


def reason_of(error: Exception) -> str:
    """Return why a program cannot be stored: what is known, else an error's kind and first line."""
    said = str(error).strip().partition("\n")[0]
    known = (why for words, why in _REASONS.items() if re.search(words, said))
    return next(known, f"{type(error).__name__}: {said}".removesuffix(": "))


FORMS: dict[str, tuple[Callable[..., bytes], Callable[..., Any]]] = {
    "export": (_make_export, _call_export),
    "executable": (_make_executable, _call_executable),
}
"""What returns what is shipped, of the jitted function and the arguments of a call; and what
answers a call from that, the arguments, static ones apart, and `jax.jit` itself."""


def _split(jitted: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the arguments without the static ones, which what is compiled has in it, and those."""
    positions, names = jax_names.static_arguments(jitted)
    positions = [n % len(args) for n in positions if -len(args) <= n < len(args)]
    static = [args[n] for n in positions] + [kwargs[name] for name in names if name in kwargs]
    kept = tuple(one for n, one in enumerate(args) if n not in positions)
    return kept, {name: one for name, one in kwargs.items() if name not in names}, static


class _Pickler(pickle.Pickler):
    """Writes the objects in fixed fields, as models and optimisers are full of, as numbers.

    A process that has the program's source has these objects, in the trees of its arguments; many
    of them pickle refuses.
    """

    def __init__(self, file: Any, known: list[Any], closed: bool = False) -> None:
        super().__init__(file)
        self.known, self.closed = known, closed

    def persistent_id(self, value: Any) -> int | None:
        if isinstance(value, (*_BY_VALUE, jax_names.public().tree_util.PyTreeDef)):
            return None
        found = next((n for n, one in enumerate(self.known) if one is value), None)
        if found is not None or self.closed:
            return found  # None: pickle writes it, or says why not
        self.known.append(value)
        # What is in it may be in a result by itself; what pickle refuses is not looked into.
        with contextlib.suppress(Exception):
            _Pickler(io.BytesIO(), self.known).dump(value.__reduce_ex__(4))
        return len(self.known) - 1


_BY_VALUE = (
    *(type, type(None), bool, int, float, complex, str, bytes),
    *(tuple, list, dict, set, frozenset),
)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, known: list[Any]) -> None:
        super().__init__(file)
        self.known = known

    def persistent_load(self, number: int) -> Any:
        return self.known[number]


def _packed(given: tuple[Any, Any, Any], out_tree: Any) -> bytes:
    """Return the tree of a result; what is in it and in the arguments, as :func:`_split`, apart."""
    file = io.BytesIO()
    _Pickler(file, _objects(given), closed=True).dump(out_tree)
    return file.getvalue()


def _unpacked(given: tuple[Any, Any, Any], stored: bytes) -> Any:
    return _Unpickler(io.BytesIO(stored), _objects(given)).load()


def _objects(given: tuple[Any, Any, Any]) -> list[Any]:
    """Return the objects in the fixed fields of arguments, in their own order."""
    args, kwargs, static = given
    known: list[Any] = []
    in_tree = jax_names.public().tree.structure((args, kwargs))
    _Pickler(io.BytesIO(), known).dump((in_tree, static))
    return known
