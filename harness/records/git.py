"""Ask git about a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path


def said(folder: Path, *arguments: str) -> str:
    """Return what git says, stripped; "" where it fails, there is no git, or no repository."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError:  # no git on this machine
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
