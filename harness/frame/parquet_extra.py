"""Parquet where its package is installed: the extra `parquet`."""

import importlib
import importlib.util
from types import ModuleType

from harness.errors import UsageError


def parquet(what: str) -> ModuleType:
    """Return :mod:`harness.frame.parquet`, which imports pyarrow.

    Raises:
        UsageError: pyarrow is not installed; the text begins with `what` needs it.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise UsageError(
            f"{what} needs pyarrow, which is not installed: pip install 'jax-harness[parquet]'. A "
            "file that ends in .csv needs nothing."
        )
    return importlib.import_module("harness.frame.parquet")
