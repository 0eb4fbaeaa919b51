"""The words of remedies: a template for each code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.profiles.causes.cause import NAMED, Remedy, ToJit
from harness.profiles.names import Names
from harness.records.units import some

if TYPE_CHECKING:
    from harness.profiles.recorded import Recorded
    from harness.profiles.trials import AppliedRemedy, NotTried

_LIBRARY = (
    "{Library} makes it, used at {place}: make the object that is used there once, and use it "
    "again; where that changes nothing, {library} makes a new one in every call: jit that call, if "
    "it allows that."
)
_FILTERED = "eqx.filter_jit takes all that is no array as static."
_STORE = "(JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0)"

TEXTS: Mapping[str, str] = {
    "jit once": "Define and jit it once, outside the loop or function that makes it.",
    "jit once and pass": (
        "Define and jit it once, outside the loop or function that makes it, and pass what changes "
        "in it as an argument."
    ),
    "define once and pass": (
        "Define it once, outside the loop or function that makes it, and pass what changes in it "
        "as an argument."
    ),
    "partial once": (
        "Make the partial and jit it once, outside the loop or function, or pass what it binds as "
        "arguments."
    ),
    "method": (
        "Each access to a method makes a new object: jit the function itself once, and pass the "
        "instance as an argument (a pytree; or static, if nothing of it ever changes)."
    ),
    "pass what it binds": (
        "Jit the function itself once, outside the loop or function, and pass what the partial "
        "binds as arguments."
    ),
    "method and pass": (
        "Each access to a method makes a new object, and what it reads of its instance differs: "
        "jit the function itself once, and pass the instance as an argument that is a pytree: of "
        "a static one the first values would stay."
    ),
    "filter_jit once": "Apply eqx.filter_jit once, outside the loop or function.",
    "filter_jit once and pass": (
        "Apply eqx.filter_jit once, outside the loop or function, and pass what changes in it as "
        "an argument."
    ),
    "library object": _LIBRARY,
    "library object and pass": (
        f"{_LIBRARY} What it closes over differs: pass that as an argument."
    ),
    "pass what differs": (
        "If only values differ in it, define it once, and pass them as arguments."
    ),
    "one set of options": "Jit `{argument}` once, with one set of options.",
    "ahead of time": (
        "Build `{value}` with one set of `{argument}`, and store what `.compile()` returned."
    ),
    "dynamic": "Make `{argument}` a dynamic argument, or let it take few values.",
    "dynamic unless it sizes": (
        "If `{argument}` sizes no array, and all that is computed of it fits an int32, make it a "
        "dynamic argument (with jax.lax.fori_loop or while_loop where it counts steps); else let "
        "it take few values."
    ),
    "dynamic bool": (
        "If only values depend on `{argument}`, make it a dynamic argument, an array (with "
        "jnp.where)."
    ),
    "few values": "Let `{argument}` take few values.",
    "filter_jit array": f"Make `{{argument}}` an array, e.g. `jnp.asarray({{value}})`: {_FILTERED}",
    "filter_jit array unless it sizes": (
        "Make `{argument}` an array, e.g. `jnp.asarray({value})`, if it is only computed with (no "
        f"size, no count that Python needs): {_FILTERED}"
    ),
    "filter_jit few values": f"Let `{{argument}}` take few values: {_FILTERED}",
    "static function once": (
        "Define the function once, outside the loop or function that makes it, and pass what "
        "changes in it as an argument."
    ),
    "static object once": ("Make `{argument}` once, outside the loop or function that makes it."),
    "equality": (
        "Pass the same object as `{argument}`, or give its type, and those of what it holds, "
        "__eq__ and __hash__ by content (a frozen dataclass)."
    ),
    "own equality": (
        "Pass the same object as `{argument}`, or let __eq__ and __hash__ of its type leave out "
        "what the function does not read."
    ),
    "one type": (
        "Pass `{argument}` always as one type: JAX builds equal values of each type anew, "
        "1 and np.int64(1), jnp.float32 and 'float32'."
    ),
    "array or never": "Pass `{argument}` always as an array, or never.",
    "same structure": (
        "Give `{argument}` the same structure in every call: keys, types of containers, None, "
        "fixed fields of classes."
    ),
    "by keyword": (
        "Pass `{argument}` in every call and always by keyword: left out, by keyword and by "
        "position are three programs for one value."
    ),
    "one way": "Pass `{argument}` always by {value}.",
    "one kind of dictionary": (
        "Give `{argument}` one kind of dictionary in every call, e.g. dict(...): an OrderedDict "
        "and a defaultdict, by what it makes, are structures of their own. JAX sorts the keys of "
        "all but an OrderedDict: take values by key where their order matters."
    ),
    "held object once": (
        "Make what `{argument}` holds (an optimizer, a model) once, outside the loop or function "
        "that makes it, and use it again."
    ),
    "pass what it holds": (
        "What `{argument}` holds computes something else each time: make it once, outside the "
        "loop or function that makes it, and pass what changes in it as an argument."
    ),
    "class once": "Define {value} once, outside the function or cell that makes it.",
    "field as data": (
        "Make the field {field} one with data (an array), or let it take few values."
    ),
    "pad": (
        "Pad `{argument}` to few sizes (a multiple, or buckets), and keep the padding out of sums, "
        "means and the like (where=mask): XLA compiles each size, also those of one jax.export "
        "with symbolic shapes."
    ),
    "one dtype": "Give `{argument}` one dtype, e.g. `{argument}.astype('{value}')`.",
    "one kind of key": "Make all keys in one way: jax.random.key, or jax.random.PRNGKey.",
    "references of one dtype": "Make `{argument}` of arrays of one dtype.",
    "always an array": "Pass `{argument}` always as an array, e.g. jnp.{value}(...), or never.",
    "explicit dtype": (
        "Give `{argument}` an explicit dtype where it is made, or what it is made of: zeros_like "
        "and the like keep a weak type."
    ),
    "one sharding": (
        "Give `{argument}` one sharding before the first call, e.g. by jax.device_put."
    ),
    "commit": (
        "Put `{argument}` where it shall be before the first call (jax.device_put with a device or "
        "sharding commits it), or never."
    ),
    "one device": (
        "Keep `{argument}` on one device; a program is built for each device it runs on."
    ),
    "one layout": "Give `{argument}` one layout; JAX builds a program for each.",
    "leave out": (
        "Leave `{argument}` out, or pass None: JAX builds for each of its types all the same."
    ),
    "one setting": (
        "Set `{argument}` once, before the first call, or always call under the same context, if "
        "one value is right for all calls."
    ),
    "clear less": "Clear caches only where memory needs it, not between calls that repeat.",
    "call before threads": "Call it once before the threads start.",
    "fewer programs": (
        "Build fewer different programs: the other causes show which come in large numbers."
    ),
    "fix error": "Fix what raises; JAX does not remember failures.",
    "jit on": (
        "jax.disable_jit() or JAX_DISABLE_JIT is on there: jitted functions run operation by "
        "operation. Leave it on only to debug."
    ),
    "jit functions": "{functions}.",
    "numpy or one jit": "Make arrays with NumPy, or put the operations into one jitted function.",
    "inside jit": "Do it inside the jitted function, or build small arrays with numpy.",
    "jit around loop": (
        "Jit the function that it is in, or define what it is given once, outside, and pass what "
        "changes in it as an argument."
    ),
    "jit differentiated": (
        "Jit the whole function that is differentiated or batched, e.g. jax.jit(jax.grad(f))."
    ),
    "jit outside loop": (
        "Jit it once, outside the loop or function that does so, and keep the result."
    ),
    "numpy to iterate": (
        "Python loops over an array of JAX's there, or unpacks it: give it np.asarray(array) for "
        "that."
    ),
    "jit shard_map": (
        "Jit the shard_map, jax.jit(jax.shard_map(...)): to jit what is in it is not enough."
    ),
    "few sizes": (
        "Keep the sizes few (pad them), or compute there with NumPy: jit builds for each size too."
    ),
    "size": (
        "Give `{value}` size= and fill_value=, so that results have one size, and keep what fills "
        "them out of what follows; or use NumPy's."
    ),
    "where": (
        "In a sum, take jnp.where(mask, x, 0) in place of x[mask], whose size is that of x; in a "
        "mean, a maximum and the like where=mask; or NumPy."
    ),
    "jit library call": (
        "Jit {functions}the call, if the library allows that, by its own jit where it has one"
        "{second}."
    ),
    "numpy to library": "It does not use JAX: give it NumPy arrays, np.asarray(array).",
    "persistent cache": f"Let the persistent cache keep them for the next run {_STORE}.",
    "jit tree map": (
        "Jit the whole map, jax.jit(lambda tree: jax.tree.map({argument}, tree)), once: it is one "
        "program for all arrays."
    ),
    "compile what is called": (
        "Compile `{argument}` ahead of time only for what is called. (To fill the persistent "
        "cache, to store programs or to analyse them nothing has to be called.)"
    ),
    "compile in threads": (
        "Call `.compile()` in threads, e.g. ThreadPoolExecutor().map(lambda one: one.compile(), "
        "lowered): XLA compiles without Python's lock; trace and lower hold it, but for kernels "
        "that lower compiles."
    ),
    "kernels in lower": (
        "Kernels are compiled while JAX lowers, which its persistent cache does not store: use the "
        "cache of who compiles them, if it has one, and lower several programs in threads."
    ),
    "carry of one dtype": (
        "Begin the carry with the dtype that it comes back with, e.g. jnp.zeros((), jnp.{value}) "
        "in place of 0: JAX then traces the body once."
    ),
    "look inside": "`harness compile {value} -- {place}` shows what takes so long in it.",
}
"""By code. `{argument}`, `{value}`, `{library}` and `{place}` are those of the remedy."""


def remedy_text(remedy: Remedy | None, program: str = "PROGRAM") -> str:
    """Return what to do, in words that end with the remedy's identifier; empty for nothing.

    Args:
        remedy: what to do.
        program: the command line of the program, for what is to be run.
    """
    if remedy is None:
        return ""
    fields = remedy._asdict()
    fields["field"] = f"of `{remedy.type}` that changes"
    if remedy.value:
        fields["field"] = f"`{remedy.value}` of `{remedy.type}`"
    fields["library"] = remedy.library or "a library"
    fields["Library"] = remedy.library or "A library"
    fields["functions"] = _functions(remedy)
    if remedy.kind == "look inside":
        fields["place"] = program
    fields["second"] = f", or {_lower(TEXTS[remedy.second][:-1])}" if remedy.second else ""
    text = TEXTS[remedy.kind].format(**fields)
    if remedy.library and remedy.kind == "persistent cache":
        text = (
            f"It is {remedy.library} that runs it: JAX's persistent cache keeps it for the next "
            f"run {_STORE}."
        )
    if remedy.kind == "one kind of key" and remedy.value == "impl":
        text = "Make all keys with one implementation: impl=, or jax_default_prng_impl."
    if remedy.kind == "pad" and remedy.value == "[None]":
        text = (
            f"Give `{remedy.argument}` one number of dimensions ({remedy.value} adds one), if one "
            f"program can be right for all, then {_lower(text)}"
        )
    if remedy.left.number:
        text += _left(remedy)
    if remedy.alike.number:
        names = some([f"`{one}`" for one in remedy.alike.first], NAMED, remedy.alike.number)
        text += f" The same for {names}."
    if remedy.kind == "always an array" and remedy.type:
        text += f" Beside {remedy.type}, {remedy.value} arrays make results {remedy.value}."
    if remedy.kind == "pad" and remedy.counts:
        text += " Padded to powers of two, these {} shapes are {}.".format(*remedy.counts)
    if remedy.second and remedy.kind != "jit library call":
        text += f" {TEXTS[remedy.second]}"
    return text


def _lower(text: str) -> str:
    return f"{text[0].lower()}{text[1:]}"


def _left(remedy: Remedy) -> str:
    (kind, argument), number = remedy.left.first[0], remedy.left.number
    if number == 1:
        return f" `{argument}` differs too ({kind}): change both."
    return f" `{argument}` ({kind}) and {number - 1} more differ too: change all."


def _functions(remedy: Remedy) -> str:
    if not remedy.functions:
        return ""
    *others, last = map(_name, remedy.functions)
    names = f"{', '.join(others)} and {last}" if others else last
    needed = f", the first to need {remedy.counts[0]:,} of them" if remedy.counts else ""
    if remedy.kind == "jit library call":
        return f"{names}{needed}, or "
    they = "they compute" if others else "it computes"
    text = f"Jit {names}{needed or ', which it is in'}, if {they} with arrays alone"
    text += f" and change{'s' * (not others)} nothing else"
    return f"{text}; make other arrays with NumPy" if remedy.counts else text


def _name(function: ToJit) -> str:
    place = f" ({function.file})" if function.file else ""
    return f"`{function.name}`{place}{' (if made once)' if function.nested else ''}"


class TrialNames:
    """What the remedies that are tried of a profile are called."""

    def __init__(self, profile: Recorded) -> None:
        self._names = Names(built.function for built in profile.builds)

    def of(self, remedy: AppliedRemedy) -> str:
        """Return `steps` of `relax` as a dynamic argument."""
        if remedy.function is None:
            return "the persistent cache, from the second run on"
        arguments = ", ".join(f"`{one}`" for one in remedy.arguments)
        how = {
            "dynamic": "as a dynamic argument",
            "strong": f"always {' or '.join(remedy.dtypes)}",
            "padded": "padded to powers of two",
        }
        return f"{arguments} of {self._names.of(remedy.function)} {how[remedy.how]}"

    def not_tried(self, one: NotTried) -> str:
        """Return shape of `x` of `loss`."""
        if one.function is None:
            return "the persistent cache, which the program has"
        argument = f"`{one.argument}` of " if one.argument else ""
        return f"{one.kind} of {argument}{self._names.of(one.function)}"
