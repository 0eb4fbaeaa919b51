"""asv plugin: what distinguishes two environments is asv's own, and each verb means what it says.

asv 0.6.6 names an existing environment after the path of its interpreter, and knows of no other
what is installed in it: `asv publish` then draws the mean of two JAX releases. Here every
environment has the versions of jax and jaxlib among its `requirements`, and the flags that reach
XLA and the night, where they are set, among its variables: asv keeps apart what differs in either.
The name of an existing environment is made of them, and holds no path, so that results can be
committed and compared with those of other machines.

An interpreter on PATH that does not start (a pyenv shim of a version that is not active) counts as
absent, with asv's warning; asv 0.6.6 itself stops there with a traceback.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from typing import Any

from asv.environment import Environment, ExistingEnvironment, get_env_name
from asv.plugins.virtualenv import Virtualenv

from harness.asv import verbs
from harness.records.environment import NIGHT, flags, recorded_env_name
from harness.targets.host import installed

_PROBE = """
import json, sys
from importlib import metadata
found = {}
for name in ("jax", "jaxlib"):
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps([".".join(map(str, sys.version_info[:2])), found]))
"""

_asv_find_python = Virtualenv._find_python
_asv_init = Environment.__init__
_asv_existing_init = ExistingEnvironment.__init__


@functools.cache
def _versions(executable: str, changed_ns: int) -> tuple[str, dict[str, str]]:
    """Return the version of Python (two numbers) and those of jax and jaxlib of an interpreter.

    `changed_ns` tells what was installed there before from what is now.
    """
    if executable == sys.executable:
        versions = {name: installed(name) for name in ("jax", "jaxlib")}
        python = ".".join(map(str, sys.version_info[:2]))
        return python, {name: version for name, version in versions.items() if version}
    ran = subprocess.run([executable, "-c", _PROBE], capture_output=True, text=True, check=True)
    python, others = json.loads(ran.stdout)
    return python, others


def _init(self: Any, conf: Any, python: str, requirements: Any, tagged_env_vars: Any) -> None:
    set_here = {**flags(), **({NIGHT: os.environ[NIGHT]} if os.environ.get(NIGHT) else {})}
    tagged = {("nobuild", name): value for name, value in set_here.items()}
    _asv_init(self, conf, python, requirements, {**tagged, **tagged_env_vars})
    # Records hold the night beside the environment's name.
    self._global_env_vars["ASV_ENV_NAME"] = recorded_env_name(self.name, self.env_vars)


def _existing_init(self: Any, *arguments: Any) -> None:
    _asv_existing_init(self, *arguments)
    self._python = _versions(self._executable, 0)[0]


def _name(self: Any) -> str:
    python, versions = _versions(self._executable, 0)
    jax = {name: version for name, version in versions.items() if name == "jax"}
    name: str = get_env_name(self.tool_name, python, jax, self._tagged_env_vars)
    return name


def _requirements(self: Any) -> dict[str, str]:
    """Return what is asked for, and what of JAX is installed."""
    asked: dict[str, str] = dict(self._requirements)
    try:
        existing = isinstance(self, ExistingEnvironment)
        executable = self._executable if existing else self.find_executable("python")
        packages = os.path.join(self._path, "asv-install-status.json")
        changed_ns = os.stat(packages).st_mtime_ns if os.path.exists(packages) else 0
        return asked | _versions(executable, changed_ns)[1]
    except OSError:  # it is not made yet
        return asked


def _find_python(python: str) -> str | None:
    executable: str | None = _asv_find_python(python)
    if executable is None:
        return None
    works = subprocess.run([executable, "-c", ""], capture_output=True, check=False).returncode == 0
    return executable if works else None


def install() -> None:
    """Change asv's classes in place: a subclass of the same name would never be looked at."""
    Environment.__init__ = _init
    Environment.requirements = property(_requirements)
    ExistingEnvironment.__init__ = _existing_init
    ExistingEnvironment.name = property(_name)
    Virtualenv._find_python = staticmethod(_find_python)
    verbs.install()


install()
