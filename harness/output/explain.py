"""The words of `harness cache explain`: why a compile hit or missed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.cache.explain import JAXLIB, NOTES, XLA_FLAGS, PartDifference, Why
from harness.cache.key_parts import KeyChange, field_of
from harness.output.cache import reason_text
from harness.records.units import some

LABELS = {JAXLIB: "jaxlib", "backend version": "platform", XLA_FLAGS: "xla_flags"}
"""What components are called, where JAX's own name is not one word."""

MOST_CHARACTERS = 60
"""A longer value is left to the lines."""

MOST_FEATURES = 8
"""So many features of a processor are named; the rest are counted."""

CHANGES = {
    "renamed": "the function was renamed",
    "result tree": "the output pytree has other keys or another structure (jax.result_info)",
    "donation": "donation of an argument",
    "sharding": "the sharding of an argument or result (committed or not, another device or mesh)",
    "precision": "matmul precision",
    "constant": "a constant's value",
    "layout": "layouts of arguments or results",
    "dimensions": "the dimensions that an operation goes over",
    "python id": "a Python id or an address in the program, {before} became {after}: this module "
    "is stored by each process and hits in none",
    "random key": "the kind of a random key, {before} became {after}",
    "shapes": "shapes or dtypes of the arguments, {before} became {after}",
    "order": "the same operations in another order, as of a sum or of a loop over a set, which has "
    "another order in each process (PYTHONHASHSEED=0, or sorted(...), gives it one)",
    "random numbers": "how random numbers are made (PRNG), {before} became {after}",
    "rematerialisation": "rematerialisation (jax.checkpoint): what the backward pass computes "
    "again",
    "constraint": "the sharding of a value inside (with_sharding_constraint)",
    "library call": "the library that is called, {before} became {after}",
    "operations": "the operations of the program",
    "locations": "source locations are in the key (jax_compilation_cache_include_metadata_in_key)",
    "large constant": "a constant too large to be stored in the recording changed",
    "serialised form": "the text is equal, its serialised form is not (another jaxlib, or debug "
    "information inside a kernel)",
    "devices": "the devices of the process, {before} became {after}",
    "process": "another process of the run, {before} became {after}",
    "processes": "the processes of the run, {before} became {after}",
    "all devices": "the devices of all processes, {before} became {after}",
    "processor": "the processor, {before} became {after}",
    "fingerprint": "what XLA sees of the devices, such as the processor's features (JAX hashes "
    "them, and this release shows no more)",
    "flag added": "flag {name} was added",
    "flag removed": "flag {name} was removed",
    "value": "{before} became {after}",
    "setting": "{name} was {before}, is {after}",
    "XLA's caches": "jax_persistent_cache_enable_xla_caches changed, and with it {field}",
    "directory moved": "the cache's directory was moved, and {field} in it is in the key",
    "directory by another path": "the cache's directory is named by another path, and {field} in "
    "it is in the key",
}
"""A template for each kind of change; :func:`change_text` has those that need more."""

NOTED = {
    "no text": "the StableHLO text of one of the two is not there: FILE.parts is missing",
    "no fields": "the fields of one of the two are not there: FILE.parts is missing",
    "same fields": "no field that JAX lets be read differs; the serialised bytes do",
    "same values": "the same values in another order or number",
}
"""What is printed below a component of which nothing more is known; for each of `NOTES`."""

KEYS = {"typed": "a typed key (jax.random.key)", "raw": "a raw key (jax.random.PRNGKey)"}

OPTIONS = {
    "allow_spmd_sharding_propagation_to_parameters": "XLA may not choose an argument's sharding "
    "any more, or may again",
    "allow_spmd_sharding_propagation_to_output": "XLA may not choose a result's sharding any more, "
    "or may again",
    "device_assignment": "the devices that it runs on",
    "num_partitions": "the number of partitions",
    "num_replicas": "the number of replicas",
    "use_shardy_partitioner": "which partitioner is used, Shardy or GSPMD",
    "use_spmd_partitioning": "whether it is partitioned",
    "exec_time_optimization_effort": "the effort for a short run",
    "memory_fitting_effort": "the effort to fit into memory",
    "optimization_level": "the level of optimization",
    "xla_backend_optimization_level": "the level of optimization",
    "env_option_overrides": "the compiler options of jax.jit",
    "xla_detailed_logging": "whether XLA logs in detail (jax_compiler_detailed_logging_min_ops)",
}
"""Compile options whose names a user does not know; others are called by their own."""

WITHOUT_VALUES = (
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
)

RUNS = {"a": "first", "b": "second"}

AFTER_AN_EQUAL_KEY = {
    "checked": ", and the entry was there: jax_compilation_cache_check_contents skips the first "
    "look-up of each key on purpose, to compare what it compiles.",
    "unreadable": "; the entry could not be read: {detail}",
    "two directories": "; the runs used two directories, {before} and {after}.",
    "set late": "; the runs used two directories, {before} and {after}; it was set to {detail} "
    "after the cache's first use, which froze it: set it before the first compile.",
    "relative directory": "; the runs used two directories, {before} and {after}: {detail} is "
    "relative to where each was started. Give an absolute path.",
    "older": "; the second recording is the older one, so nothing was there yet.",
    "evicted": " and the first run left an entry, which was gone: the {run} run evicted it, to "
    "make room for {detail} under its cap.",
}

NO_CACHE = {
    "set later": "The {run} run had no cache yet: it set jax_compilation_cache_dir later, to "
    "{detail}. Set it before the first compile.",
    "no effect": "The {run} run had no cache to ask: JAX_COMPILATION_CACHE_DIR={detail} has no "
    "effect, as it was set after `import jax`, or the program unsets it.",
    "no cache": "The {run} run had no cache to ask: {reason}.",
}


def verdict(why: Why) -> str:
    """Return in a sentence or two why a compile hit or missed."""
    run = RUNS.get(why.run, "")
    if why.reason in NO_CACHE:
        reason = reason_text(why.detail, why.before)
        text = NO_CACHE[why.reason].format(run=run, detail=why.detail, reason=reason)
        return f"The key is equal. {text}" if why.status == "same key" else text
    match why.status:
        case "hit":
            return "The key is equal, and the cache answered."
        case "same key":
            return f"The key is equal{_after_an_equal_key(why, run)}"
        case "another key":
            return _another_key(why)
    which = "first" if why.status == "only in A" else "second"
    alone = f"Compiled in the {which} run only: the other has no more of its name and types"
    return f"{'; '.join((alone, *map(change_text, why.changes)))}."


def _after_an_equal_key(why: Why, run: str) -> str:
    if why.reason == "failed" and why.run == "b":
        return f"; the request failed: {why.detail}"
    if why.reason == "failed":
        return f"; the first run's request failed and left no entry: {why.detail}"
    if why.reason == "not written":
        reason = reason_text(why.detail, why.before, why.limit)
        return f"; the first run wrote no entry: {reason}."
    if why.reason == "gone":
        caps = {why.before, why.after}
        if caps == {"-1"}:
            gone = "removed, or evicted by another program; neither run has a size cap"
        elif caps == {""}:
            gone = "evicted by another program, or removed; these recordings are too old to say"
        else:
            gone = "evicted by another program, or removed; neither run evicted it"
        return f" and the first run left an entry, which was gone: {gone}."
    template = AFTER_AN_EQUAL_KEY[why.reason]
    places = {"before": why.before or "(none)", "after": why.after or "(none)"}
    return template.format(run=run, detail=why.detail or "none", **places)


def _another_key(why: Why) -> str:
    if why.changes == (KeyChange("no components"),):
        return "The key changed; one of the recordings holds no components to say which part."
    if not why.parts:
        return "The key changed, and no captured component did: JAX hashes something unknown."
    texts = [change_text(change) for change in why.changes]
    if why.parts == (JAXLIB,):
        return f"jaxlib {'; '.join(texts)}: every key is another one."
    which = " and ".join(f"`{label(part)}`" for part in why.parts)
    return f"{which} changed, the rest is equal{': ' if texts else ''}{'; '.join(texts)}."


def label(part: str) -> str:
    """Return what a component of a key is called."""
    return LABELS.get(part, part)


def change_text(change: KeyChange) -> str:
    """Return a change in words."""
    before, after = change.before or "none", change.after or "none"
    match change.kind:
        case "option":
            field = field_of(change)
            text = OPTIONS.get(field, field)
            if field in WITHOUT_VALUES or max(len(before), len(after)) > MOST_CHARACTERS:
                return text
            return f"{text}, {change.before or '(not set)'} became {change.after or '(not set)'}"
        case "features":
            lost, gained = change.before.split(), change.after.split()
            both = (("without", lost), ("with", gained))
            return "; ".join(
                f"the processor's features, {how} {some(names, MOST_FEATURES)}"
                for how, names in both
                if names
            )
        case "one release":
            return f"only the {'first' if change.before else 'second'} run's JAX hashes it"
        case "random key":
            before, after = KEYS[before], KEYS[after]
    values = {"before": before, "after": after, "field": field_of(change)}
    return CHANGES[change.kind].format(name=change.name, **values)


def lines(difference: PartDifference) -> Iterator[str]:
    """Yield what is printed below a component: its values or fields, or lines of the program."""
    for change in difference.changes:
        if change.kind in NOTES:
            yield NOTED[change.kind]
        elif change.kind in ("value", "flag added", "flag removed"):
            removed = change.name if change.kind == "flag removed" else change.before
            added = change.name if change.kind == "flag added" else change.after
            yield from (f"- {removed}",) if removed else ()
            yield from (f"+ {added}",) if added else ()
        elif change.name and change.kind != "setting":
            before, after = change.before or "(not set)", change.after or "(not set)"
            yield f"{change.name}: {before} -> {after}"
        elif change.kind == "one release":
            yield change_text(change)
    yield from difference.lines


def settings_text(changes: Sequence[KeyChange]) -> str:
    """Return settings that were others in the second run, as a sentence."""
    return f"Set otherwise in the second run: {'; '.join(map(change_text, changes))}."
