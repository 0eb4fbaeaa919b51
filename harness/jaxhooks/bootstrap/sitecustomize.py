"""Runs at the start of every Python that is followed, and then steps aside.

Python runs this file because `harness cache ledger -o FILE -- ...` or `harness profile -- ...` put
its folder on PYTHONPATH. It opens a ledger or a profile as soon as, and only if, this process
imports JAX. It uses the standard library alone, and as little of it as can be, so that a process
without JAX pays next to nothing, and a program that sets XLA_FLAGS before it imports JAX is left to
do so.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
HOME = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
LOG_FILE = "harness.jaxhooks.log_file"

clock = time.perf_counter_ns


class _WhenImported:
    """Finds nothing itself; it acts when JAX was imported."""

    def __init__(self, actions: list[Callable[[int, int], None]]) -> None:
        self.actions = actions
        self.looking = False

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "jax" or self.looking:
            return None
        begin = clock()
        self.looking = True
        try:
            spec = _spec_of(name)  # which asks this one again, and then the others
        finally:
            self.looking = False
        loader = spec.loader if spec is not None else None
        if spec is None or loader is None or not hasattr(loader, "exec_module"):
            return spec
        execute = loader.exec_module

        def then_act(module: ModuleType) -> None:
            execute(module)  # where it raises, the next import of it comes here again
            loader.__dict__.pop("exec_module", None)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                end = clock()
                for action in self.actions:
                    action(begin, end)

        loader.exec_module = then_act  # type: ignore[method-assign]
        return spec


def _spec_of(name: str) -> importlib.machinery.ModuleSpec | None:
    from importlib.util import find_spec  # every Python without JAX would pay for it

    return find_spec(name)


def _with_harness(what: str, action: Callable[[], None], is_needed: bool = False) -> None:
    """Act with this very package importable; whatever goes wrong, the program goes on.

    Where the action is needed, it ends instead.
    """
    try:
        there = _spec_of("harness")
        folder = os.path.dirname(there.origin or "") if there is not None else ""
        if there is not None and not os.path.isdir(os.path.join(folder, "jaxhooks")):
            raise ImportError(f"it has a package of its own that is named harness, in {folder}")
        # Another release of this one may be installed where the program runs.
        sys.path.insert(0, HOME)
        try:
            action()
        finally:
            if HOME in sys.path:
                sys.path.remove(HOME)
    except Exception as error:
        print(f"harness: this process has no {what}: {error}", file=sys.stderr)
        if is_needed:
            os._exit(70)


def _given_to(
    what: str, module: str, function: str, value: str, is_needed: bool = False
) -> Callable[[int, int], None]:
    """Return what calls a function of this package with a value, once JAX is there."""

    def action() -> None:
        hook = __import__(f"harness.jaxhooks.{module}", fromlist=[function])  # findable only now
        getattr(hook, function)(value)

    return lambda begin_ns, end_ns: _with_harness(what, action, is_needed)


def _begin_profile(folder: str) -> Callable[[int, int], None]:
    """Begin the file of this process, see to its end, and return what records from JAX on."""
    began = clock()
    log_file = _load_log_file()
    file = log_file.LogFile(folder)
    file.begin("command")
    os.register_at_fork(after_in_child=file.after_fork)
    session: Any = None
    failures: tuple[str, ...] = ()

    def end(why: str) -> None:
        if session is not None:
            session.end(why)
            return
        line = {"at_ns": clock(), "why": why, "own_ns": own_ns, "failures": failures}
        file.append(log_file.as_json("ended", line))

    def record(begin_ns: int, end_ns: int) -> None:
        def action() -> None:
            nonlocal session, failures
            began = clock()
            try:
                from harness.jaxhooks import session as recording  # findable only now

                recording.follow(file, (begin_ns, end_ns), own_ns + clock() - began)
                session = recording
            except Exception as error:
                failures = (log_file.clean(f"{type(error).__name__}: {error}"),)
                raise

        _with_harness("profile", action)

    log_file.at_end(end)
    own_ns = clock() - began
    return record


def _load_log_file() -> Any:
    """Import a module by its file: the packages around it take longer than all that it does."""
    path = os.path.join(HOME, *LOG_FILE.split(".")) + ".py"
    loader = importlib.machinery.SourceFileLoader(LOG_FILE, path)
    module: Any = type(sys)(LOG_FILE)
    module.__file__ = path
    module.__package__ = LOG_FILE.rpartition(".")[0]
    module.__loader__ = loader
    module.__spec__ = importlib.machinery.ModuleSpec(LOG_FILE, loader, origin=path)
    sys.modules[LOG_FILE] = module
    loader.exec_module(module)
    return module


def _follow() -> None:
    actions: list[Callable[[int, int], None]] = []
    if path := os.environ.get("HARNESS_LEDGER"):
        actions.append(_given_to("ledger", "ledger", "open_until_exit", path))
    if text := os.environ.get("HARNESS_REBUILD"):
        actions.append(_given_to("rebuild", "rebuild", "follow", text, True))
    folder = os.environ.get("HARNESS_PROFILE")
    if folder:
        try:
            actions.append(_begin_profile(folder))
        # The program goes on, whatever is wrong with the profile.
        except Exception as error:
            print(f"harness: this process has no profile: {error}", file=sys.stderr)
    if actions:
        sys.meta_path.insert(0, _WhenImported(actions))


def _step_aside() -> None:
    """Let the sitecustomize that would have run without this one run now."""
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec  # seldom needed

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if __name__ == "sitecustomize":  # and not where a checker or a test imports it by its full name
    _follow()
    _step_aside()
