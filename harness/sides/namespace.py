"""The namespace that a baseline is written against: the array API, and three functions besides."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

from harness.sides.side import Unavailable

SPECIAL = ("erf", "expit", "logsumexp")
"""What the array API lacks and baselines need, from `scipy.special` or `cupyx.scipy.special`."""

_SPECIAL_OF = {"numpy": "scipy.special", "cupy": "cupyx.scipy.special"}


def namespace(library: str) -> Any:
    """Return `xp` for `numpy` or `cupy`: resolved once, outside the clock.

    It has every name of `array_api_compat`'s namespace, and :data:`SPECIAL`.
    """
    if library not in _SPECIAL_OF:
        raise ValueError(f"there is no namespace for {library!r}; expected 'numpy' or 'cupy'")
    try:
        compat = importlib.import_module(f"array_api_compat.{library}")
    except ImportError as error:
        raise Unavailable(
            f"array-api-compat cannot be imported for {library} ({error}); it is a "
            "dependency of the harness, so install that again"
        ) from error
    special = importlib.import_module(_SPECIAL_OF[library])
    names = {key: value for key, value in vars(compat).items() if not key.startswith("__")}
    names |= {key: getattr(special, key) for key in SPECIAL}
    return SimpleNamespace(**names)
