"""Compare two ledgers: why a compile of the second run did, or did not, find the first run's entry.

Modules are matched by key, then by name and what else is equal, in order of appearance, then by a
computation that is equal up to the module's name. Only the first event of a key in a run counts:
the one that decided. Of two keys that differ it is said which parts do, what each should be
called, and its lines.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from harness.cache import key_parts
from harness.cache.ledger import later_directory
from harness.watch import cache_keys as keys
from harness.watch import ledger_events as reasons
from harness.watch.ledger_events import Component, Event, Requests, reason_text

Status = Literal["hit", "same key, no hit", "key changed", "only in A", "only in B"]
Causes = tuple[str, ...]
Lines = tuple[str, ...]

XLA_FLAGS, JAXLIB = "XLA flags", "jax_lib version"
LABELS = {JAXLIB: "jaxlib", "backend version": "platform", XLA_FLAGS: "xla_flags"}
"""What this project calls JAX's components, where JAX's own name is not one word."""


@dataclass(frozen=True)
class ComponentDifference:
    """One component that differs: what a reader should call it, and the lines that show it."""

    component: str
    causes: Causes
    lines: Lines


@dataclass(frozen=True)
class RequestPair:
    """The event of a module in each run."""

    a: Event
    b: Event
    run_a: Requests
    run_b: Requests

    def kept(self, named: Callable[[str], str], a: str, b: str) -> tuple[str, str] | None:
        """Return what the ledgers keep under two hashes; None where one of them lacks it."""
        one, other = self.run_a.parts.get(named(a)), self.run_b.parts.get(named(b))
        return None if one is None or other is None else (one, other)

    def changed_settings(self) -> Causes:
        """Say which of JAX's settings, that may change a program, were others."""
        old, new = self.settings()
        return tuple(
            f"{name} was {old[name]}, is {new[name]}"
            for name in old
            if name.startswith("jax_") and not name.startswith(_OF_THE_CACHE)
            if name in new and old[name] != new[name]
        )

    def settings(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the settings of JAX in both runs; none where one of them is not known."""
        texts = self.kept(keys.settings_part, self.a.settings, self.b.settings)
        return (json.loads(texts[0]), json.loads(texts[1])) if texts else ({}, {})


_OF_THE_CACHE = ("jax_compilation_cache", "jax_persistent_cache", "jax_enable_compilation_cache")
"""Settings that change no program."""


@dataclass(frozen=True)
class Explained:
    """One module of the second run, or of the first alone."""

    module: str
    status: Status
    verdict: str
    a: Event | None = None
    b: Event | None = None
    differences: tuple[ComponentDifference, ...] = ()


def explain_runs(a: Requests, b: Requests) -> list[Explained]:
    """Return one explanation per module, in the order of the second run."""
    first_a, first_b = _first_of_each_key(a), _first_of_each_key(b)
    partners = _match(first_a, first_b, a, b)
    explained = [
        _explain(RequestPair(partners[event.key], event, a, b))
        if event.key in partners
        else _alone(event, a, b, is_first=False)
        for event in first_b
    ]
    taken = {event.key for event in partners.values()}
    rest = [event for event in first_a if event.key not in taken]
    return explained + [_alone(event, b, a, is_first=True) for event in rest]


def changed_settings(a: Requests, b: Requests) -> Causes:
    """Say which of JAX's settings were others in the second run, by the first request of each."""
    both = a.events and b.events
    return RequestPair(a.events[0], b.events[0], a, b).changed_settings() if both else ()


def _alone(event: Event, other: Requests, run: Requests, is_first: bool) -> Explained:
    """Explain a module of one run, for which the other has no key."""
    asked = {one.module: one for one in other.events if not one.key}.get(event.module)
    which, without = ("first", "second") if is_first else ("second", "first")
    said = f"Compiled in the {which} run only: the other has no more of its name and types"
    if not is_first:
        said = "; ".join((said, *changed_settings(other, run)))
    said = _no_cache(without, asked, other) if asked else f"{said}."
    if is_first:
        return Explained(event.module, "only in A", said, a=event, b=asked)
    return Explained(event.module, "only in B", said, a=asked, b=event)


def _no_cache(run: str, event: Event, requests: Requests) -> str:
    if later := later_directory(event, requests.events):
        return (
            f"The {run} run had no cache yet: it set jax_compilation_cache_dir later, to {later}. "
            "Set it before the first compile."
        )
    for one in event.overridden:
        if one.name == "jax_compilation_cache_dir":
            return (
                f"The {run} run had no cache to ask: {one.name.upper()}={one.variable} has no "
                "effect, as it was set after `import jax`, or the program unsets it."
            )
    return f"The {run} run had no cache to ask: {reason_text(event.reason, event.detail)}."


def _first_of_each_key(run: Requests) -> list[Event]:
    first: dict[str, Event] = {}
    for event in run.events:
        if event.key:
            first.setdefault(event.key, event)
    return list(first.values())


def _match(
    first_a: list[Event], first_b: list[Event], a: Requests, b: Requests
) -> dict[str, Event]:
    """Return the partner in A of each event of B that has one, by the key in B."""
    left = {event.key: event for event in first_a}
    partners = {event.key: left.pop(event.key) for event in first_b if event.key in left}
    mine = {event.key: _identities(event, b) for event in first_b if event.key not in partners}
    yours = {key: _identities(event, a) for key, event in left.items()}
    for number in range(_NUMBER):
        alike: dict[Any, list[str]] = defaultdict(list)
        for key in left:
            alike[yours[key][number]].append(key)
        asked = Counter(mine[key][number] for key in mine if key not in partners)
        for key in mine:
            named = mine[key][number]
            # By its name alone a module is told only where it is the one that is left.
            sure = number != _BY_NAME or len(alike[named]) == asked[named] == 1
            if key not in partners and named and alike[named] and sure:
                partners[key] = left.pop(alike[named].pop(0))
    return partners


_BY_NAME, _NUMBER = 5, 7
"""The place of the name alone in what :func:`_identities` returns, and how many there are."""


def _identities(event: Event, run: Requests) -> tuple[Any, ...]:
    """Return by what a module may be found in another run, the surest first."""
    name, parts = event.module, components(event)
    program, options = (
        parts[part].sha256 if part in parts else ""
        for part in (keys.COMPUTATION, keys.COMPILE_OPTIONS)
    )
    text = run.parts.get(keys.text_part(program)) or ""
    types = key_parts.types(text)
    shapes, dtypes = (tuple(one[at] for one in types) for at in (0, 1))
    whole = (name, program, options), (name, program), (name, *types)
    return *whole, (name, shapes), (name, dtypes), name, key_parts.without_name(text)


def _explain(pair: RequestPair) -> Explained:
    a, b = pair.a, pair.b
    if a.key == b.key:
        status: Status = "hit" if b.outcome == "hit" else "same key, no hit"
        return Explained(b.module, status, f"The key is equal{_same_key(pair)}", a, b)
    if b.reason in (reasons.NO_DIRECTORY, reasons.UNUSABLE_DIRECTORY):
        return Explained(b.module, "key changed", _no_cache("second", b, pair.run_b), a, b)
    found = differences(pair)
    return Explained(b.module, "key changed", told(pair, found), a, b, tuple(found))


def _same_key(pair: RequestPair) -> str:
    """Say, after "The key is equal", what became of the request, and why."""
    a, b = pair.a, pair.b
    if b.outcome == "hit":
        return ", and the cache answered."
    if b.outcome == "failed":
        return f"; the request failed: {b.detail}"
    if b.reason in (reasons.NO_DIRECTORY, reasons.UNUSABLE_DIRECTORY):
        return f". {_no_cache('second', b, pair.run_b)}"
    if b.reason == reasons.CHECKED:
        return (
            ", and the entry was there: jax_compilation_cache_check_contents skips the first "
            "look-up of each key on purpose, to compare what it compiles."
        )
    if b.read_error:
        return f"; the entry could not be read: {b.read_error}"
    if a.outcome == "failed":
        return f"; the first run's request failed and left no entry: {a.detail}"
    if a.outcome == "unwritten" and a.reason != reasons.CHECKED:
        return f"; the first run wrote no entry: {reason_text(a.reason, a.detail)}."
    if os.path.normpath(a.directory) != os.path.normpath(b.directory):
        used = f"{a.directory or '(none)'} and {b.directory or '(none)'}"
        old, new = (one.get("jax_compilation_cache_dir", "") for one in pair.settings())
        if late := [one for one in (*a.late, *b.late) if one.name == "jax_compilation_cache_dir"]:
            used += (
                f"; it was set to {late[0].value or 'none'} after the cache's first use, which "
                "froze it: set it before the first compile"
            )
        elif old == new and old and not os.path.isabs(old) and "://" not in old:
            used += f": {old} is relative to where each was started. Give an absolute path"
        return f"; the runs used two directories, {used}."
    if b.at_s < a.at_s:
        return "; the second ledger is the older one, so nothing was there yet."
    return f" and the first run left an entry, which was gone: {_gone(pair)}"


def _gone(pair: RequestPair) -> str:
    for run, which in ((pair.run_a, "first"), (pair.run_b, "second")):
        for event in run.events:
            if pair.b.key in event.evicted and pair.a.at_s <= event.at_s <= pair.b.at_s:
                return f"the {which} run evicted it, to make room for {event.module} under its cap."
    caps = [one.get("jax_compilation_cache_max_size", "") for one in pair.settings()]
    if caps == ["-1", "-1"]:
        return "removed, or evicted by another program; neither run has a size cap."
    others = "neither run evicted it" if any(caps) else "these ledgers are too old to tell"
    return f"evicted by another program, or removed; {others}."


# Which parts of two keys differ


def components(event: Event) -> dict[str, Component]:
    """Return the components of a request's key by their names."""
    return {component.name: component for component in event.components}


def differences(pair: RequestPair) -> list[ComponentDifference]:
    """Return the components that differ; of an upgrade, which changes others too, jaxlib alone."""
    mine, yours = components(pair.a), components(pair.b)
    found = []
    for name in {**mine, **yours}:
        if name not in mine or name not in yours:
            line = f"only the {'second' if name in yours else 'first'} run's JAX hashes it"
            found.append(ComponentDifference(LABELS.get(name, name), (), (line,)))
        elif mine[name].sha256 != yours[name].sha256:
            causes, lines = COMPARED.get(name, _values)(pair, mine[name], yours[name])
            found.append(ComponentDifference(LABELS.get(name, name), causes, lines))
    upgrades = [one for one in found if one.component == LABELS[JAXLIB]]
    return upgrades or found


def told(pair: RequestPair, found: list[ComponentDifference]) -> str:
    """Say in a sentence what changed."""
    if not pair.a.components or not pair.b.components:
        return "The key changed; one of the ledgers holds no components to say which part."
    if not found:
        return "The key changed, and no captured component did: JAX hashes something unknown."
    names = [one.component for one in found]
    causes: list[str] = []
    for cause in (cause for one in found for cause in one.causes):
        # What a flag or a setting does to the compile options is no cause of its own.
        if not any(cause.partition(",")[0] in said for said in causes):
            causes.append(cause)
    if names == [LABELS[JAXLIB]]:
        return f"jaxlib {'; '.join(causes)}: every key is another one."
    if {keys.COMPUTATION, keys.COMPILE_OPTIONS} & set(names):
        causes += pair.changed_settings()
    which = " and ".join(f"`{name}`" for name in names)
    return f"{which} changed, the rest is equal{': ' if causes else ''}{'; '.join(causes)}."


# How a component is compared: its causes, and the lines that show them


def _values(pair: RequestPair, mine: Component, yours: Component) -> tuple[Causes, Lines]:
    removed, added = _removed_and_added(mine, yours)
    lines = (*(f"- {value}" for value in removed), *(f"+ {value}" for value in added))
    one = len(removed) == len(added) == 1
    causes = (f"{removed[0]} became {added[0]}",) if one else ()
    return causes, lines or ("the same values in another order or number",)


def _flags(pair: RequestPair, mine: Component, yours: Component) -> tuple[Causes, Lines]:
    removed, added = _removed_and_added(mine, yours)
    causes = [f"flag {value} was removed" for value in removed]
    causes += [f"flag {value} was added" for value in added]
    return tuple(causes), _values(pair, mine, yours)[1]


def _removed_and_added(mine: Component, yours: Component) -> tuple[list[str], list[str]]:
    removed = [value for value in mine.values if value not in yours.values]
    return removed, [value for value in yours.values if value not in mine.values]


def _computation(pair: RequestPair, mine: Component, yours: Component) -> tuple[Causes, Lines]:
    texts = pair.kept(keys.text_part, mine.sha256, yours.sha256)
    if texts is None:
        return (), ("the StableHLO text of one of the two is not there: FILE.parts is missing",)
    if texts[0] != texts[1]:
        return key_parts.program_causes(*texts), key_parts.diff(*texts)
    settings = [pair.a.metadata_in_key, pair.b.metadata_in_key]
    if any(settings):
        cause = "source locations are in the key (jax_compilation_cache_include_metadata_in_key)"
        if not all(settings):
            return (cause,), (f"in the key: {settings[0]} -> {settings[1]}",)
        located = pair.kept(keys.located_part, mine.sha256, yours.sha256) or ("", "")
        return (cause,), key_parts.diff(*located)
    if key_parts.ELIDED in texts[0]:
        return ("a constant too large to be kept in the ledger changed",), ()
    return (
        "the text is equal, its serialised form is not (another jaxlib, or debug information "
        "inside a kernel)",
    ), ()


def _accelerator(pair: RequestPair, mine: Component, yours: Component) -> tuple[Causes, Lines]:
    texts = pair.kept(keys.accelerator_part, mine.sha256, yours.sha256)
    said = key_parts.accelerator_changes(*texts) if texts else ()
    if not texts or not said:
        cause = "what XLA sees of the devices, such as the processor's features (a hash is told)"
        return (cause,), _values(pair, mine, yours)[1]
    old, new = (key_parts.Accelerator.read(text) for text in texts)
    return said, (f"- {old}", f"+ {new}")


_PATHS = ("xla_gpu_per_fusion_autotune_cache_dir", "xla_gpu_kernel_cache_file")
"""Paths in the cache's directory. jax 0.10.2 hashes the first, on CPU as well; 0.11.0 and later
only the second, which is set with jax_persistent_cache_enable_xla_caches=all."""

_BY_SIZE = "xla_detailed_logging"
"""JAX sets it for programs of ten operations and more."""


def _options(pair: RequestPair, mine: Component, yours: Component) -> tuple[Causes, Lines]:
    texts = pair.kept(keys.fields_part, mine.sha256, yours.sha256)
    if texts is None:
        return (), ("the fields of one of the two are not there: FILE.parts is missing",)
    changes = key_parts.option_changes(*texts)
    if not changes:
        return (), ("no field that JAX lets be read differs; the serialised bytes do",)
    program, other = (components(event).get(keys.COMPUTATION) for event in (pair.a, pair.b))
    causes = (
        _of_the_path(change.field, pair.a.directory, pair.b.directory)
        if change.field in _PATHS
        else change.cause
        for change in changes
        if not (change.field == _BY_SIZE and program != other)
    )
    return tuple(filter(None, causes)), tuple(change.line for change in changes)


def _of_the_path(field: str, a: str, b: str) -> str:
    """Say why a path in the cache's directory, which is in the key, differs."""
    if a == b:
        return f"jax_persistent_cache_enable_xla_caches changed, and with it {field}"
    same = bool(a and b) and os.path.realpath(a) == os.path.realpath(b)
    how = "is named by another path" if same else "was moved"
    return f"the cache's directory {how}, and {field} in it is in the key"


COMPARED = {
    keys.COMPUTATION: _computation,
    keys.COMPILE_OPTIONS: _options,
    keys.ACCELERATOR: _accelerator,
    XLA_FLAGS: _flags,
}
"""How components are compared that are more than a few values."""
