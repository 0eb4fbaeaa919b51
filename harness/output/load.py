"""Say how busy the machine was with what was not measured."""

from __future__ import annotations


def before_text(load: float, cores: int) -> str:
    """Say what the load average of the last minute means for what is measured now."""
    return (
        f"this machine is loaded: {load:.1f} processes were running in the last minute, on "
        f"{cores} cores. Times will be longer and scatter more."
    )


def meanwhile_text(others: float, cores: int) -> str:
    """Say what it means that others used so many cores during a sweep."""
    return (
        f"machine busy: other processes used {others:.1f} of {cores} cores during the sweep. "
        "Times are longer and scatter more."
    )
