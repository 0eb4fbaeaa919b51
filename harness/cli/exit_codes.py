"""What commands end with where no error says it; docs/cookbook.md lists all codes."""

from __future__ import annotations

SOME_FAILED = 3

NOTHING_MEASURED = 4
"""Or nothing was found."""

NOT_AS_EXPECTED = 5
"""A row of `harness cache probe`."""

DEFECT = 70
"""An error in the harness. Python would end with 1, which stands for something that is slower."""

INTERRUPTED = 130
