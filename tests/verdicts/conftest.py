from __future__ import annotations

import sys

import pytest

from harness import cli


@pytest.fixture
def compare(monkeypatch, capsys):
    """Run `harness compare`; return its exit code, output and errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["harness", "compare", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out = capsys.readouterr()
        return ended.value.code or 0, out.out, out.err

    return run
