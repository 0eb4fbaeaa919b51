"""What pip needs for this harness, and for an extra of it, whatever it was installed from."""

from __future__ import annotations

import json
import shlex
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

NAME = "jax-harness"
_HOME = Path(__file__).parents[2]


def command_for(extra: str) -> str:
    """Return a `pip install` of an extra's packages; no index need have the harness itself."""
    try:
        listed = map(Requirement, metadata.requires(NAME) or ())
    except metadata.PackageNotFoundError:  # a clone that is on the path
        return f"pip install -e {shlex.quote(f'{_HOME}[{extra}]')}"
    chosen = []
    for one in listed:
        if one.marker and one.marker.evaluate({"extra": extra}):
            one.marker = None
            chosen.append(str(one))
    return shlex.join(["pip", "install", *chosen])


def elsewhere() -> str:
    """Return what another machine's pip can install; "" where that is only known here.

    Of a harness that came from an index only the name.
    """
    origin = _origin()
    if "vcs_info" in origin:
        how = origin["vcs_info"]
        return f"{NAME} @ {how['vcs']}+{origin['url']}@{how['commit_id']}"
    return "" if origin.get("url") else NAME


def _origin() -> dict[str, Any]:
    """Return what pip noted of where it had the harness from; {} for an index."""
    try:
        about = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return {"url": _HOME.as_uri()}
    origin: dict[str, Any] = json.loads(about) if about else {}
    return origin
