"""Times, sizes and counts as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence

_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def seconds_text(value_s: float, half_s: float | None = None) -> str:
    """Return a time to two or three digits: `48 µs`, `4.1 ms`, `41 s`, `3 min 12 s`, `2 h 5 min`.

    `half_s`, half of its interval, follows in the same unit: `4.1 ± 0.2 ms`.
    """
    if half_s is None:
        whole = round(value_s)
        if whole >= 3600:
            return f"{round(value_s / 60) // 60} h {round(value_s / 60) % 60} min"
        if whole >= 100:
            return f"{whole // 60} min {whole % 60} s"
        if value_s == 0:
            return "0 s"
    scale, unit = next(
        ((scale, unit) for scale, unit in _SECONDS if abs(value_s) >= scale * 0.9995), _SECONDS[-1]
    )
    value = value_s / scale
    decimals = 0 if abs(value) >= 9.95 else 1
    if half_s is None:
        return f"{value:.{decimals}f} {unit}"
    half = half_s / scale
    while decimals < 3 and 0 < half < 0.5 * 10**-decimals:
        decimals += 1
    return f"{value:.{decimals}f} ± {half:.{decimals}f} {unit}"


def scaled_text(value: float, unit: str) -> str:
    """Return a count of bytes, flops or the like in thousands: `12 B`, `3.21 MB`, `2.1 Gflop`."""
    for scale, prefix in _THOUSANDS:
        if value >= scale * 0.9995:
            return f"{value / scale:.3g} {prefix}{unit}"
    return f"{value:.0f} {unit}"


def value_text(value: float, unit: str) -> str:
    """Return a value in its own unit: `4.1 ms`, `1.5 kB`, `12.5 frames`."""
    if unit == "seconds":
        return seconds_text(value)
    return size_text(value) if unit == "bytes" else f"{value:.10g} {unit}".rstrip()


def size_text(size_bytes: float) -> str:
    """Return a size in units of 1000 bytes: `512 B`, `1.5 kB`."""
    return scaled_text(size_bytes, "B")


def share_text(part: float, whole: float) -> str:
    """Return a share in percent: `69 %`, `0.4 %`; empty where there is no whole."""
    if whole <= 0:
        return ""
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 0.95 or percent == 0 else f"{percent:.1g} %"


def ratio_text(ratio: float) -> str:
    """Return a ratio: `1.27×`, and `–` for one that is not known."""
    return "–" if math.isnan(ratio) else f"{ratio:.3g}×"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 build`, `2 builds`."""
    nouns = f"{noun}e" if noun.endswith("ss") else noun
    nouns = f"{noun[:-1]}ie" if noun.endswith(("ry", "dy")) else nouns
    return f"{number:,} {noun if number == 1 else nouns + 's'}"


def some(names: Sequence[str], most: int, number: int | None = None) -> str:
    """Return names, the first of many: `a, b and 3 more`; `number` is how many there really are."""
    more = (len(names) if number is None else number) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def times_text(count: int) -> str:
    """Return how often: `once`, `3 times`."""
    return "once" if count == 1 else f"{count:,} times"


def ago(seconds: float) -> str:
    """Return how long ago something was: `3 d ago`, `12 s ago`, or `5 s ahead` of this clock."""
    if seconds < -1:
        return f"{-seconds:.0f} s ahead"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"


def often_text(count: int) -> str:
    """Return how often, as it is spoken: `once`, `twice`, `17 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
