"""Whether the processes of tests are forked, which decides how long all of them take."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from tests import forks


@pytest.mark.parametrize(
    ("names", "forked"),
    [
        (("mkdocs.yml", "numpy.txt", "data", "build/lib"), True),
        (("mkdocs.py",), False),
        (("click/__init__.py",), False),
    ],
)
def test_a_process_is_forked_unless_its_folder_has_a_module_of_its_own(
    fork_server, tmp_path, names, forked
):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    ask = [sys.executable, "-c", "import sys; print('pandas' in sys.modules)"]
    with forks.forking(fork_server):
        assert forks.run(ask, cwd=tmp_path, check=True).stdout == f"{forked}\n"
        assert forks.run(ask, cwd=forks.ROOT, check=True).stdout == "True\n"


def test_the_harness_of_a_forked_process_is_the_one_beside_the_tests(fork_server, tmp_path):
    ask = [sys.executable, "-c", "import harness, sys; print(harness.__file__, *sys.path[:2])"]
    with forks.forking(fork_server):
        said = forks.run(ask, cwd=tmp_path, check=True, env=os.environ | {"PYTHONPATH": ""}).stdout
    file, *path = said.split()
    assert file == str(forks.ROOT / "harness" / "__init__.py")
    assert str(forks.ROOT) not in path


def test_who_is_killed_while_it_asks_takes_the_server_from_nobody(fork_server, tmp_path):
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(fork_server)
    with forks.forking(fork_server):
        ask = [sys.executable, "-c", "import sys; print('pandas' in sys.modules)"]
        assert forks.run(ask, cwd=tmp_path, check=True).stdout == "True\n"
