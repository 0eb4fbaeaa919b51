"""The project: plain benchmarks of each type that asv has, beside workloads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.asv.project import Project, kill

PLAIN = """
class Sums:
    params = [10, 1000]
    param_names = ["n"]

    def setup(self, n):
        self.numbers = list(range(n))

    def time_sum(self, n):
        sum(self.numbers)

    def peakmem_sum(self, n):
        sum(self.numbers)

    def track_length(self, n):
        return len(self.numbers)


def setup_cache_of_all():
    pass


def timeraw_pass():
    return "pass"


def mem_list():
    return [0] * 100


def track_three():
    return 3


def time_rounds():
    pass


time_rounds.rounds = 3
time_rounds.repeat = 2
time_rounds.number = 1
"""

WORK = """
import jax.numpy as jnp

from harness import Workload, spec


class Wave(Workload):
    sweep = {"size": [8, 16]}
    targets = ("cpu", "gpu")

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return jnp.sin(x) + 1


class Half(Workload):
    sweep = {"good": [True, False]}
    static = ("good",)
    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x, good):
        if not good:
            raise ValueError("only good ones work")
        return x + 1
"""

MODULES = {"plain": PLAIN, "work": WORK}

TRACE = "work.Wave.track_trace"
ONE = "work.Wave.track_trace(8, 'forward', 'cpu')"
"""One cell."""


@contextmanager
def previewed(project: Project, *options: str) -> Iterator[str]:
    """Have `asv preview` serve the pages; yield their address."""
    serving = project.start("preview", *options)
    try:
        assert serving.stdout
        said = (re.search(r"http://\S+", line) for line in serving.stdout)
        yield next(found[0].rstrip("/") + "/" for found in said if found)
    finally:
        kill(serving)


def chosen(name: str) -> str:
    """Return the expression for `--bench` that means one cell or benchmark."""
    return f"^{re.escape(name)}"


def samples(result: dict[str, Any]) -> list[float]:
    """Return the samples of the first case of a result."""
    found: list[float] = result["samples"][0]
    return found
