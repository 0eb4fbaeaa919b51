"""What a command says beside its output: on standard error, and who says it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    """Say something beside the output."""
    print(f"harness: {text}", file=sys.stderr, flush=True)


@contextmanager
def warnings_said() -> Iterator[None]:
    """Say each warning of what is done inside, afterwards and without Python's file and line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            for text in dict.fromkeys(str(warning.message) for warning in caught):
                say(text)
