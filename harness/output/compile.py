"""What `harness compile` says: one template for each cause, remedy and reason."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from harness.jaxhooks.jax_names import COMPILE_SCRIPT
from harness.program.compiler.causes import CompileCause, RemedyTrial
from harness.program.compiler.evidence import Experiment
from harness.program.compiler.inside import Inside
from harness.program.compiler.places import Place
from harness.program.compiler.tree import REST
from harness.records.units import seconds_text, share_text, size_text
from harness.targets.target import Target

_CAUSES = {
    "constants": "{size} of constants are part of the program",
    "folding": "constant folding: XLA computes what depends on no argument",
    "kernels": "kernels of {name}",
    "unrolled scan": "a scan is unrolled by {count}",
    "sort": "one sort of {count} arrays by {keys} of them",
    "switch": "`jax.lax.switch` with {count} branches; all of them are compiled",
    "loop": "a Python loop writes {equations} of {of} equations, {count} copies of its body",
    "loop of other shapes": "a Python loop writes {equations} of {of} equations, {count} turns of "
    "other shapes",
    "repeated": "{equations} of {of} equations are {count} copies of the same operations",
    "leaves": "{count} arrays are arguments, and {equations} of {of} equations are the same "
    "operations for each",
    "library": "{count} copies of it in one program, {equations} of {of} equations: {by} traces it "
    "again and again",
    "associative scan": "`jax.lax.associative_scan` is written out, {count} levels of it: "
    "{equations} of {of} equations",
    "dumps": "XLA writes files of each compile, because of {name}",
    "integer product": "slow calls: a product whose result is {name}, for which XLA:CPU has no "
    "fast code",
    "integer convolution": "slow calls: a convolution whose result is {name}, for which XLA:CPU "
    "has no fast code",
    "ragged dot": "slow calls: `jax.lax.ragged_dot` multiplies all rows by the matrices of all "
    "{count} groups",
}

_SORT = "Stack the arrays, and index all at once: `x[:, jnp.argsort(x[0])]`."

_REMEDIES = {
    "constants": "Pass them as arguments of the jitted function.",
    "folding": "Compute it before with NumPy, or from an argument.",
    "kernels of scatter": "Write all places in one update, `x.at[places].add(...)`.",
    "sort by keys": f"{_SORT} For several keys, one stable `argsort` for each in a `fori_loop`, "
    "the last key first.",
    "unrolled scan": "Give it a smaller `unroll`.",
    "sort": _SORT,
    "switch": "All do the same with other numbers: put those into arrays, and index them by the "
    "number of the branch.",
    "switch of other branches": "Choose in Python what is known before the call (a static "
    "argument), or let several branches be one.",
    "loop": "`jax.lax.scan` or `fori_loop` builds the body once.",
    "loop of other shapes": "Pad the arrays to one shape and mask with `jnp.where`: then "
    "`jax.lax.scan` or `fori_loop` builds the body once.",
    "repeated": "If that is a loop, `jax.lax.scan` or `fori_loop` builds its body once; over many "
    "arrays, `jax.vmap` of one stacked array.",
    "leaves": "Stack arrays of one shape into one (`jnp.stack`), or make one vector of all: "
    "`jax.flatten_util.ravel_pytree`, for an optimizer `optax.flatten`.",
    "library": "Look for a solver, or an option, that calls it in fewer places. Jitted before you "
    "hand it over it is traced once, and XLA still compiles each copy.",
    "associative scan": "For sums, products and maxima `jnp.cumsum`, `jax.lax.cumprod`, `cummax`, "
    "`cumlogsumexp`; where a step after the other is fast enough, `jax.lax.scan`.",
    "dumps": "Unset it where nobody reads the files.",
    "integer product": "Multiply as int32 (`preferred_element_type=jnp.int32`, or convert the "
    "arguments), and convert the result.",
    "integer convolution": "Convert to float32, which is exact below 2**24, and the result back.",
    "ragged dot": "Groups of one size, or padded to one, are one batched product: "
    "`jnp.einsum('gbk,gkn->gbn', ...)`.",
}

_MEASURES = {
    "build_s": ("faster", "slower", "lower and compile are"),
    "call_s": ("faster", "slower", "a call is"),
    "flops": ("fewer flops", "more flops", "XLA counts"),
}

_UNTRIED = {
    "stopped": "stopped before it was",
    "several devices": "the case is of several devices",
    "rolled before": "the first trial rolls all loops",
    "other shapes": "only its author knows how to give all turns one shape",
    "nested": "the constants are of functions that it calls",
    "unequal turns": "no equal turns follow one another in it",
    "takes more": "a turn takes more than what the turn before it made and what is its own",
    "not traced": "JAX does not trace it: {detail}",
    "not compiled": "it cannot be compiled: {detail}",
}


_DEVICES = {
    "": "jax.devices()[0]",
    "gpu": 'get_topology_desc(platform="cuda", topology="1x2x1", target_config='
    'HERE.with_name("target.pbtxt").read_text()).devices[0]',
    "tpu": 'get_topology_desc(platform="tpu", topology_name="{description}").devices[0]',
}


def script(
    label: str, target: Target, variables: Mapping[str, str], versions: Mapping[str, str]
) -> str:
    """Return the program that compiles the module beside it, with JAX alone."""
    kind = target.family if target.description else ""
    return COMPILE_SCRIPT.format(
        label=label.replace('"', "'"),
        versions=", ".join(f"{name} {version}" for name, version in versions.items()),
        environment=dict(variables),
        target=target.name,
        device=_DEVICES[kind].format(description=target.description),
    )


def answer(inside: Inside, stages_s: Mapping[str, float]) -> str:
    """Return the one sentence that says most.

    `stages_s` are the seconds of trace and lower; empty where they are not known.
    """
    most = max(
        (one for one in inside.groups if one.name != REST), key=lambda one: one.wall_s, default=None
    )
    compiled = f"compiled in {seconds_text(inside.wall_s)}"
    if most is not None:
        share = share_text(most.wall_s, inside.wall_s)
        compiled += f", {share} of it {group_text(most.name, most.part)}"
    covered = f"{share_text(inside.covered, 1.0)} of the compile is in events that XLA names."
    before = " and ".join(
        f"{ed} in {seconds_text(stages_s[stage])}"
        for stage, ed in (("trace", "traced"), ("lower", "lowered"))
        if stage in stages_s
    )
    if not before:
        return f"{compiled}. {covered}"
    largest = max(stages_s, key=stages_s.__getitem__)
    first = f" ({largest} is the largest stage)" if stages_s[largest] > inside.wall_s else ""
    return f"{compiled}; {before}{first}. {covered}"


def group_text(name: str, part: str) -> str:
    """Return what a group of passes is called."""
    return f"{name}: {part}" if part else name


def unread_text(name: str, failures: Sequence[str]) -> str:
    """Return why there are no causes of a program whose jaxpr was not read."""
    why = "; ".join(failures) or "the harness did not see it being lowered"
    return f"{name}: causes are unknown, because its jaxpr was not read: {why}."


def cause_lines(cause: CompileCause, inside: Inside) -> Iterator[str]:
    """Yield a cause with its place, its remedy, and what came of trying that."""
    what = (_CAUSES.get(cause.remedy) or _CAUSES[cause.kind]).format(
        size=size_text(cause.size_bytes),
        name=cause.name,
        count=f"{cause.count:,}",
        keys=cause.keys,
        equations=f"{cause.equations:,}",
        of=f"{cause.of:,}",
        by=place_text(cause.by),
    )
    where = place_text(cause.place)
    line = f"{where}: {what}" if where else what[0].upper() + what[1:]
    if cause.cost_s is not None:
        share = share_text(cause.cost_s, inside.wall_s)
        line += f", {seconds_text(cause.cost_s)} of the compile ({share})"
    yield f"{line}."
    yield f"  Remedy: {_REMEDIES[cause.remedy]}"
    if cause.trial is not None:
        yield f"  {_trial(cause.trial)}."
    if cause.measured is not None and (cause.trial is None or cause.trial.untried):
        yield f"  {_measured(cause.measured, cause.is_verified)}."


def _measured(one: Experiment, is_verified: bool) -> str:
    """Return what a remedy saved in an experiment, and whether that was of this target."""
    much = max(one.before, one.after) / min(one.before, one.after)
    less, more, what = _MEASURES[one.measure]
    where = f"jax {one.release} for {one.target}, experiment `{one.kind}`"
    text = f"ith {where}: {what} {much:.2g} × {less if one.after <= one.before else more}"
    return f"Measured w{text}" if is_verified else f"Not verified here. W{text}"


def _trial(trial: RemedyTrial) -> str:
    """Return what lower and compile took less where a remedy was tried, and how sure that is."""
    if trial.untried:
        return f"Not tried: {_UNTRIED[trial.untried].format(detail=trial.detail)}"
    if trial.saved_s is None:
        return "Not tried"
    count = len(trial.after_s)
    builds = f"{count} builds each" if count > 1 else "one build each, which says nothing of noise"
    saved = f"{seconds_text(abs(trial.saved_s))} of lower and compile"
    if trial.is_noise:
        differ = "less" if trial.saved_s > 0 else "more"
        return f"Tried: {saved} {differ}, which is within the noise of {builds}"
    share = share_text(abs(trial.saved_s), median(trial.before_s))
    if trial.saved_s < 0:
        return f"Tried, as the harness writes it: costs {saved} ({share}), in {builds}"
    return f"Tried: saves {saved} ({share}), in {builds}"


def place_text(place: Place | None) -> str:
    """Return `train.py:8 step`; "" where no place is known."""
    if place is None or not place.file:
        return ""
    return f"{line_text(place.file, place.line)} {place.function}".rstrip()


def line_text(file: str, line: int) -> str:
    """Return `file:line`, as near to here as it is; "" for no file."""
    if not file:
        return ""
    near = os.path.relpath(file)
    return f"{file if near.startswith('..') else near}:{line}"
