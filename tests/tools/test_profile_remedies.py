"""Remedies that are followed to the letter change no result, and build as predicted."""

from __future__ import annotations

import sys

import pytest

from tests import forks
from tools.profile_remedies.__main__ import judged
from tools.profile_remedies.pairs import ALL


@pytest.mark.parametrize(
    "name", ["closure_over_arrays", "static_whole_number", "whole_numbers_come_first"]
)
def test_a_remedy_followed_changes_no_result(name):
    wrong, _ = judged(next(pair for pair in ALL if pair.name == name))
    assert wrong == []


@pytest.mark.nightly
def test_every_remedy_followed_changes_no_result():
    done = forks.run([sys.executable, "-m", "tools.profile_remedies"], cwd=forks.ROOT, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
