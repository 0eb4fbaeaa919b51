"""What the persistent cache really did, request by request, and why it missed."""

from __future__ import annotations

from harness.cache.ledger.summary import Rate as Rate
from harness.cache.ledger.summary import Summary as Summary
from harness.cache.ledger.summary import frame as frame
from harness.cache.ledger.summary import summarize as summarize
from harness.watch.ledger.events import Book as Book
from harness.watch.ledger.events import Component as Component
from harness.watch.ledger.events import Event as Event
from harness.watch.ledger.events import read as read
from harness.watch.ledger.events import read_all as read_all
from harness.watch.ledger.jax_internals import LedgerError as LedgerError
from harness.watch.ledger.recorder import Ledger as Ledger
from harness.watch.ledger.recorder import ledger as ledger
from harness.watch.ledger.recorder import open_until_exit as open_until_exit
