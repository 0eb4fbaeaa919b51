"""What a build was of: its function, arguments and settings, once for all who record it."""

from __future__ import annotations

import contextlib
import hashlib
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from harness.jaxhooks import call_sites, signatures, statics
from harness.jaxhooks.cache_keys import SettingsReader
from harness.jaxhooks.call_sites import origin_of
from harness.jaxhooks.events import Around, Dynamic, Leaf, Origin, Program, Static
from harness.jaxhooks.statics import Numbers
from harness.jaxhooks.visits import JaxVisit

_T = TypeVar("_T")

_Arguments = tuple[tuple[Dynamic, ...], tuple[Leaf, ...], tuple[Static, ...]]
"""The dynamic ones, each array in them, and the static ones."""

_NO_ARGUMENTS: _Arguments = ((), (), ())

_MOST_KEPT = 10_000

MOST_HASHED = 1 << 20
"""Bytes of an array whose values are hashed."""


class FunctionKey(NamedTuple):
    """A function by its name and its place in the source."""

    name: str
    qualname: str
    file: str
    line: int
    origin: Origin = "jax"
    """Whose it is: who jitted it, where that is a function of JAX's."""
    column: int = 0
    around: tuple[Around, ...] = ()


NO_FUNCTION = FunctionKey("", "", "", 0)


@dataclass(frozen=True)
class Description:
    """What a build was of."""

    function: FunctionKey = NO_FUNCTION
    object: int = 0
    wrapper: int = 0
    arguments: _Arguments = _NO_ARGUMENTS
    jit: dict[str, str] = field(default_factory=dict)
    context: dict[str, str] = field(default_factory=dict)
    program: Program | None = None
    derived: int = 0
    constants: str = ""
    """A hash of the arrays that the function closes over; empty without any."""


class Describer:
    """Describes builds; a part that cannot be described is left empty, and the failure counted."""

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self.failed = failed
        self.objects, self.wrappers = Numbers(), Numbers()
        self._functions: dict[Any, FunctionKey] = {}
        self._qualnames: dict[tuple[str, int], str] = {}
        self._options: dict[int, dict[str, str]] = {}
        self._links: weakref.WeakKeyDictionary[Any, Description] = weakref.WeakKeyDictionary()
        self._settings: SettingsReader
        self._texts: signatures.Texts

    def prepare(self) -> None:
        """Find what is needed of the running JAX."""
        self._settings, self._texts = SettingsReader(), signatures.Texts()

    def describe(self, build: JaxVisit) -> None:
        """Say what a build that is over was of, in its `described`."""
        link: Description = build.link or Description()
        jaxpr = (build.how or {}).get("jaxpr") if build.kind == "call" else None
        traced = build.params.params.get("jaxpr") if build.params is not None else None
        derived = self.objects.of(jaxpr) if jaxpr is not None and jaxpr is not traced else 0
        function = self._try(NO_FUNCTION, self.function_of, build)
        # Of a stage ahead of time, where they were described for the next one already.
        is_linked = build.link is not None and (build.kind != "lower" or build.meta is None)
        if is_linked and build.kind != "call":
            arguments = link.arguments
        else:
            arguments = self._try(_NO_ARGUMENTS, self._arguments, build)
        constants = link.constants
        if build.compiled and (jaxpr if jaxpr is not None else traced) is not None:
            constants = self._constants(jaxpr if jaxpr is not None else traced)
        build.described = Description(
            function,
            self._number_of(build.function) if build.function is not None else link.object,
            self.wrappers.of(build.info) if build.info is not None else link.wrapper,
            arguments,
            self._try({}, self._jit, build),
            self._try({}, self._context, build),
            program_of(build.executable, constants) if build.compiled else None,
            derived,
        )
        # What is not needed any more must not be kept alive.
        build.function = build.info = build.params = build.meta = build.how = None
        build.args, build.kwargs, build.values = (), None, ()
        build.debug = build.executable = build.options = None

    # --- ahead of time: a stage knows what the one before it knew ---------------------------------

    def linked(self, what: Any) -> Description | None:
        """Return what is known of what JAX traced or lowered."""
        return self._links.get(what) if what is not None else None

    def link_trace(self, visit: JaxVisit) -> None:
        """Attach what a function was traced with to what JAX made of it."""
        jaxpr = visit.params.params["jaxpr"]
        earlier = self.linked(jaxpr)
        wrapper = self.wrappers.of(visit.info)
        if earlier is not None and earlier.wrapper == wrapper:
            return
        link = Description(
            self.function_of(visit),
            self._number_of(visit.function),
            wrapper,
            self._arguments(visit),
            self._jit(visit),
        )
        self._links[jaxpr] = visit.link = link

    def link_lower(self, visit: JaxVisit, computation: Any) -> None:
        """Attach what a program was lowered for to what JAX made of it."""
        link = visit.link or Description(self.function_of(visit))
        constants = self._constants((visit.how or {}).get("jaxpr"))
        arguments, jit = self._arguments(visit), self._jit(visit)
        link = replace(link, arguments=arguments, jit=jit, constants=constants)
        self._links[computation] = visit.link = link
        visit.meta = None  # described already

    # --- parts --------------------------------------------------------------------------------

    def _number_of(self, function: Any) -> int:
        """Return the number of the function object by which JAX knows a function of the user's."""
        return self.objects.of_function(call_sites.given_to_pmap(function))

    def is_the_users(self, function: Any) -> bool:
        """Return whether a function is the program's or a library's, and not JAX's own."""
        code = call_sites.code_of(function)
        return code is not None and origin_of(code.co_filename) in ("program", "library")

    def function_of(self, visit: JaxVisit) -> FunctionKey:
        """Return which function a visit is of, by name and place."""
        if visit.function is not None:
            key: Any = self.objects.of(visit.function)
        elif visit.link is not None:
            return visit.link.function  # type: ignore[no-any-return]
        else:
            key = (*call_sites.source_of(visit.debug), visit.name)
        function_key = self._functions.get(key)
        if function_key is None:
            if len(self._functions) > _MOST_KEPT:
                self._functions.clear()
            made = self._from_code(visit) if visit.function is not None else self._from_text(*key)
            function_key = self._functions[key] = made
        return function_key

    def _from_code(self, visit: JaxVisit) -> FunctionKey:
        call = self._try(None, statics.filtered_call, visit.function, visit.args)
        code = call_sites.code_of(visit.function if call is None else call.function)
        name = call_sites.name_of(call_sites.given_to_pmap(visit.function))
        if not name and visit.params is not None:
            name = str(visit.params.params.get("name", ""))
        if code is None:
            return FunctionKey(name or "?", name or "?", "", 0)
        place = (code.co_filename, code.co_firstlineno)
        self._qualnames[place] = code.co_qualname
        around = (Around("equinox.filter_jit"),) if call else call_sites.around(visit.function)
        column = call_sites.column_of(code)
        origin = origin_of(code.co_filename) or "jax"
        if origin == "jax" and not call_sites.is_jitted_by_jax(visit.function):
            origin = "program"
        return FunctionKey(name or code.co_name, code.co_qualname, *place, origin, column, around)

    def _from_text(self, short: str, file: str, line: int, name: str) -> FunctionKey:
        if not short:
            return FunctionKey(name or "?", name or "?", "", 0)
        qualname = self._qualnames.get((file, line), short)
        return FunctionKey(name or short, qualname, file, line, origin_of(file) or "jax")

    def _arguments(self, visit: JaxVisit) -> _Arguments:
        if visit.kind == "lower" and visit.link is not None:
            trees, leaves, fixed = visit.link.arguments
            metas = visit.meta[max(0, len(visit.meta) - len(leaves)) :]
            both = zip(leaves, metas, strict=False)
            placed = [
                replace(self._texts.placed(leaf.path, meta, leaf.kind), unused=leaf.unused)
                for leaf, meta in both
            ]
            return trees, tuple(placed), fixed
        if visit.info is None:
            return (), self._leaves_of_jaxpr(visit), ()
        call = self._try(None, statics.filtered_call, visit.function, visit.args)
        args, given = visit.args, visit.info.static_argnums
        positions = {n % len(args) if n < 0 and args else n for n in given}
        return *self._dynamic(visit, call, positions), self._statics(visit, call, positions)

    def _leaves_of_jaxpr(self, visit: JaxVisit) -> tuple[Leaf, ...]:
        """Return the arguments of a program without a Python function."""
        names = getattr(visit.debug, "arg_names", None) or ()
        leaves = []
        for number, meta in enumerate(visit.meta or ()):
            path = (names[number] if number < len(names) else "") or f"args[{number}]"
            if number < len(visit.values):
                value = visit.values[number]
                leaves.append(self._texts.leaf(path, value, meta.aval, meta.format))
            else:
                leaves.append(self._texts.placed(path, meta, ""))
        return tuple(leaves)

    def _statics(
        self, visit: JaxVisit, call: statics.FilteredCall | None, positions: set[int]
    ) -> tuple[Static, ...]:
        none: tuple[Static, ...] = ()
        if getattr(visit.function, "_apply_primitive", False):
            return self._try(none, statics.parameters, visit.function, self.objects)
        if call is not None:
            return tuple(statics.static(*named, self.objects) for named in call.statics)
        called = visit.info, positions, visit.args, visit.kwargs
        return self._try(none, statics.split, *called, self.objects)

    def _dynamic(
        self, visit: JaxVisit, call: statics.FilteredCall | None, positions: set[int]
    ) -> tuple[tuple[Dynamic, ...], tuple[Leaf, ...]]:
        """Return the dynamic arguments: as JAX has them, or where it failed before, as given."""
        p, signature = visit.params, visit.info.fun_signature
        if p is None:
            static_names = visit.info.static_argnames
            given = signature, visit.args, visit.kwargs, positions, static_names
            trees, pairs = signatures.flattened(*given)
            names, values = [path for path, _ in pairs], [value for _, value in pairs]
            types = formats = [None] * len(values)
        else:
            names, types, count = p.arg_names, p.in_avals, len(p.consts)
            values = visit.values[count:]
            formats = [meta.format for meta in (visit.meta or ())[count:]]
            if len(formats) != len(types):
                formats = [None] * len(types)
            trees = ()
            if call is None:
                trees = self._try(trees, signatures.arguments_of, signature, p.in_tree, positions)
        if call is not None:
            trees, names = call.trees, list(call.paths)
        leaves = [*map(self._texts.leaf, names, values, types, formats)]
        if p is not None:
            none: tuple[int, ...] = ()
            for number in self._try(none, unused, p.params["jaxpr"].jaxpr, len(p.consts)):
                leaves[number] = replace(leaves[number], unused=True)
        return trees, tuple(leaves)

    def _jit(self, visit: JaxVisit) -> dict[str, str]:
        link: Description | None = visit.link
        if visit.info is not None:
            number = self.wrappers.of(visit.info)
            options = self._options.get(number)
            if options is None:
                if len(self._options) > _MOST_KEPT:
                    self._options.clear()
                options = signatures.jit_options(visit.info)
                self._options[number] = options
        elif link is not None:
            options = link.jit
        else:
            options = signatures.jit_options(visit.how or {})
        more = {}
        if visit.how is not None and any(visit.how.get("donated_invars", ())):
            jaxpr = visit.how.get("jaxpr")
            names = getattr(getattr(jaxpr, "debug_info", None), "arg_names", None) or ()
            flags = enumerate(visit.how["donated_invars"])
            given = [names[n] if n < len(names) else f"args[{n}]" for n, flag in flags if flag]
            more["donated"] = ", ".join(given)
        platforms = (visit.how or {}).get("lowering_platforms")
        if platforms:
            more["lowering_platforms"] = ", ".join(platforms)
        if visit.options:
            given = [f"{name}={value}" for name, value in visit.options.items()]
            before = options.get("compiler_options")
            more["compiler_options"] = ", ".join([before, *given] if before else given)
        return {**options, **more} if more else options

    def _context(self, visit: JaxVisit) -> dict[str, str]:
        context = self._settings.now()
        if visit.unjitted:
            context = {**context, "jax_disable_jit": "True"}
        params = visit.how or (visit.params.params if visit.params is not None else {})
        mesh = params.get("ctx_mesh")
        if mesh is None or mesh.empty:
            return context
        return {**context, "mesh": signatures.mesh_text(mesh)}

    def _constants(self, jaxpr: Any) -> str:
        return self._try("", constants_of, jaxpr, self.objects)

    def _try(self, otherwise: _T, make: Callable[..., _T], *arguments: Any) -> _T:
        try:
            return make(*arguments)
        # Values of the user's own may do anything when they are looked at.
        except Exception as error:
            self.failed(error)
            return otherwise


def constants_of(jaxpr: Any, objects: Numbers) -> str:
    """Return a hash of the arrays that a jaxpr and those inside it close over, or nothing.

    Of values up to :data:`MOST_HASHED` bytes, which JAX has on the host since it lowered them; a
    larger array is the same if it is the same object.
    """
    texts: list[object] = []
    inside, seen = [jaxpr], set()
    while inside:
        one = inside.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        values = list(getattr(one, "consts", ()))
        for equation in getattr(one, "eqns", ()):
            values += [v.val for v in equation.invars if getattr(v, "val", None) is not None]
            for value in equation.params.values():
                several = value if isinstance(value, tuple | list) else (value,)
                inside += (each for each in several if hasattr(each, "eqns"))
        texts += (_value(one, objects) for one in values if getattr(one, "shape", ()))
    return hashlib.blake2b(repr(texts).encode(), digest_size=8).hexdigest() if texts else ""


def _value(array: Any, objects: Numbers) -> object:
    import numpy  # a recorded process has JAX, and so NumPy

    content: object = None
    if getattr(array, "nbytes", MOST_HASHED) < MOST_HASHED:
        with contextlib.suppress(Exception):  # a tracer, an array that was deleted, of keys
            content = hashlib.blake2b(numpy.asarray(array).tobytes(), digest_size=8).digest()
    if content is None:
        content = objects.of(array)
    return array.shape, str(array.dtype), content


def unused(jaxpr: Any, constants: int) -> tuple[int, ...]:
    """Return which arguments of a jaxpr nothing in it takes, behind so many constants."""
    left = {id(one): number for number, one in enumerate(jaxpr.invars[constants:])}
    for one in jaxpr.outvars:
        left.pop(id(one), None)
    for equation in jaxpr.eqns:
        if not left:
            break
        for one in equation.invars:
            left.pop(id(one), None)
    return tuple(left.values())


def program_of(executable: Any, constants: str = "") -> Program | None:
    """Return what an executable says of itself at little cost, None where it says nothing."""
    loaded = getattr(executable, "xla_executable", None)
    if loaded is None:
        return None
    sizes, flops, fingerprint = (0, 0, 0, 0), 0.0, ""
    # Each is something that a backend may not have.
    with contextlib.suppress(Exception):
        stats = loaded.get_compiled_memory_stats()
        sizes = (
            int(stats.generated_code_size_in_bytes),
            int(stats.argument_size_in_bytes),
            int(stats.output_size_in_bytes),
            int(stats.temp_size_in_bytes),
        )
    with contextlib.suppress(Exception):
        cost = loaded.cost_analysis()
        cost = cost[0] if isinstance(cost, list) else cost
        flops = max(0.0, float(cost.get("flops", 0.0)))
    with contextlib.suppress(Exception):
        fingerprint = loaded.fingerprint.decode("ascii", "replace")
    return Program(*sizes, flops, fingerprint, constants) if any(sizes) or fingerprint else None
