"""Names that a declaration may not take, or may only take: tables that each room adds its own to.

A leaf, so that a room can add names without importing what checks them.
"""

from __future__ import annotations

from collections.abc import Collection

RESERVED_AXES = set(
    """
    machine commit commit_date started_at env python jax jaxlib workload version target transform
    scenario stage unit value calibrated low high least p10 p50 p90 p50_low
    p50_high n_calls programs programs_s n_processes samples status reason fingerprint
    effort dirty calibrated_samples entry_bytes precision backend threads comparable labels case
    self n_forked
    """.split()  # noqa: SIM905 - one name per line would say no more
)
"""Names an axis cannot have: columns of the frame. Rooms above add theirs."""

known_names: dict[str, Collection[str]] = {}
"""Attributes of a workload to the names they may hold; each is added by who knows them."""
