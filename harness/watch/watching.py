"""Start and stop recording: the hooks are put in place once, for as many recorders as there are."""

from __future__ import annotations

import threading

from harness.watch.events import Request
from harness.watch.hooks import Hooks
from harness.watch.ledger import watching as ledger
from harness.watch.ledger.events import Event
from harness.watch.nesting import Sink

_lock = threading.RLock()
_hooks: Hooks | None = None
_reader: ledger.Reader | None = None


def start(sink: Sink) -> Hooks:
    """Tell a sink every build from now on.

    Raises:
        ProfileError: if the running JAX is not one that the profile knows.
        LedgerError: if it is not one that the ledger knows.
    """
    global _hooks, _reader
    with _lock:
        if _hooks is None:
            hooks = Hooks()
            reader = _reader_for(hooks)
            hooks.sinks = (sink,)
            ledger.start(reader)
            try:
                hooks.install()
            except BaseException:
                hooks.remove()
                ledger.stop(reader)
                raise
            _hooks, _reader = hooks, reader
        else:
            _hooks.sinks = (*_hooks.sinks, sink)
        return _hooks


def stop(sink: Sink) -> None:
    """Tell a sink no more; the last one to leave puts JAX back as it was."""
    global _hooks, _reader
    with _lock:
        if _hooks is None:
            return
        _hooks.sinks = tuple(one for one in _hooks.sinks if one is not sink)
        if not _hooks.sinks:
            hooks, reader, _hooks, _reader = _hooks, _reader, None, None
            hooks.remove()
            if reader is not None:
                ledger.stop(reader)


def after_fork() -> None:
    """Forget, in a child, what other threads of the parent were at."""
    global _lock
    _lock = threading.RLock()
    if _hooks is not None:
        here = threading.get_ident()
        _hooks.open = {here: _hooks.open[here]} if here in _hooks.open else {}


def _reader_for(hooks: Hooks) -> ledger.Reader:
    def ns(seconds: float | None) -> int:
        return round((seconds or 0.0) * 1e9)

    def receive(event: Event) -> None:
        request = Request(
            event.module,
            event.outcome,
            ns(event.request_s),
            event.key,
            event.reason,
            ns(event.compile_s),
            ns(event.load_s),
            ns(event.write_s),
            event.entry_bytes or 0,
            event.directory,
        )
        hooks.requested(request, ns(event.own_s))

    return ledger.Reader(receive, lambda text: hooks.failed(RuntimeError(text)), None)
