"""asv plugin: results of `asv run -E existing` hold no path of this machine.

asv 0.6.6 names an existing environment after the path of its interpreter, and writes that path
into the results file as its Python version. Both are replaced by versions, so that results can be
committed and compared with those of other machines, and so that two JAX releases installed one
after the other into one folder do not overwrite each other's results.

An interpreter on PATH that does not start (a pyenv shim of a version that is not active) counts as
absent, with asv's warning; asv 0.6.6 itself stops there with a traceback.
"""

from __future__ import annotations

import functools
import json
import subprocess
from typing import Any

from asv.environment import ExistingEnvironment
from asv.plugins.virtualenv import Virtualenv

from harness.records.environment import existing_env_name

_PROBE = """
import json, sys
from importlib import metadata
try:
    jax = metadata.version("jax")
except metadata.PackageNotFoundError:
    jax = ""
print(json.dumps([".".join(map(str, sys.version_info[:2])), jax]))
"""

_asv_find_python = Virtualenv._find_python
_asv_init = ExistingEnvironment.__init__


@functools.cache
def _versions(executable: str) -> tuple[str, str]:
    """Return the versions of Python (two numbers) and of jax ("" without it) of an interpreter."""
    found = subprocess.run([executable, "-c", _PROBE], capture_output=True, text=True, check=True)
    python, jax = json.loads(found.stdout)
    return python, jax


def _init(self: Any, conf: Any, executable: str, requirements: Any, tagged_env_vars: Any) -> None:
    _asv_init(self, conf, executable, requirements, tagged_env_vars)
    self._python = _versions(self._executable)[0]


def _name(self: Any) -> str:
    return existing_env_name(*_versions(self._executable))


def _find_python(python: str) -> str | None:
    found: str | None = _asv_find_python(python)
    if found is None:
        return None
    works = subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0
    return found if works else None


def install() -> None:
    """Change asv's classes in place: a subclass of the same name would never be looked at."""
    ExistingEnvironment.__init__ = _init
    ExistingEnvironment.name = property(_name)
    Virtualenv._find_python = staticmethod(_find_python)


install()
