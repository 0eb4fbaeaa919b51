"""Slower, faster, same or unsure: the rules for two sides, and how often they are wrong here."""

from __future__ import annotations

from harness.verdicts.compare import compare_arms as compare_arms
