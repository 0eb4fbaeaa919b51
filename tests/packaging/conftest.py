from __future__ import annotations

import pytest

from tests.packaging.building import ROOT, build


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The source distribution and the wheel of this working tree."""
    if not (ROOT / ".git").exists():
        pytest.skip("distributions are built from what git tracks, and this is no clone")
    return build(tmp_path_factory.mktemp("dist"))
