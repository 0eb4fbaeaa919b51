"""The JSON Schema of `[tool.harness]` in a pyproject.toml, for editors.

Who reads these tables checks them, too, and says what is wrong.
"""

from __future__ import annotations

from typing import Any

from harness.profiles.causes.cause import IDS
from harness.records.project_tables import TABLES
from harness.stages.registry import STAGES, effect


def schema() -> dict[str, Any]:
    """Return the schema of a whole pyproject.toml, which says nothing of other tools' tables."""
    about = {
        "thresholds": _table(
            "The smallest changes that count, as shares of a stage's time: 0.1 is 10 %.",
            {name: _share(stage.title, effect(name)) for name, stage in STAGES.items()},
        ),
        "profile": _table(
            "What harness profile leaves out.",
            {
                "mute": {
                    "description": "Identifiers of remedies that are only counted; see remedies.md",
                    "type": "array",
                    "items": {"enum": sorted(IDS)},
                }
            },
        ),
    }
    own = _table("jax-harness", {name: about[name] for name in TABLES})
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"tool": {"type": "object", "properties": {"harness": own}}},
    }


def _table(description: str, properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": description,
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def _share(title: str, usual: float) -> dict[str, Any]:
    schema = {"description": title, "default": usual}
    return {**schema, "type": "number", "exclusiveMinimum": 0, "maximum": 1}
