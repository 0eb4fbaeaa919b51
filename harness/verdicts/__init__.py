"""Verdicts: what changed between two arms, and how often such a verdict is wrong here."""

from __future__ import annotations

from harness.verdicts.compare import compare_arms as compare_arms
