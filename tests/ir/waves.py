"""A folder of workloads whose programs are looked at."""

SUITE = '''
import os
import sys
import time

import jax.numpy as jnp

from harness import Workload, spec


class Wave(Workload):
    """Several cases, of which one is skipped."""

    sweep = {"size": [8, 16, 32], "axes": [(0,), (0, 1)]}
    static = ("axes",)

    def inputs(self, size):
        return spec((size, 4))

    def skip(self, size, axes, **case):
        return "thirty-two is too many" if size == 32 else None

    @staticmethod
    def function(x, axes):
        return jnp.sin(x).sum(axes)


class Wide(Workload):
    x64 = True

    def inputs(self):
        return spec((4, 4), "float64")

    @staticmethod
    def function(x):
        return x * 2


class Troubled(Workload):
    sweep = {"trouble": ["raise", "abort", "hang"]}
    static = ("trouble",)
    timeout_s = 0.5

    def inputs(self):
        print("noise on standard output")
        return spec((8,))

    @staticmethod
    def function(x, trouble):
        if trouble == "raise":
            raise ValueError("this workload cannot be traced")
        if trouble == "abort":
            print("about to abort", file=sys.stderr, flush=True)
            os.abort()
        time.sleep(3600)


class Elsewhere(Workload):
    targets = ("tpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return x
'''


def write(folder, name, text=SUITE):
    """Write a folder of benchmarks called `name`, which no other test may use."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "waves.py").write_text(text)
    return place
