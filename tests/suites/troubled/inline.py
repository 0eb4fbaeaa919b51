"""Workloads that misbehave where `compute` is taken, and nowhere else."""

import os
import signal

import jax

from harness import Workload, spec


class Inline(Workload):
    """Does what `trouble` says where calls are computed inline."""

    sweep = {"trouble": ["none", "raise", "kill"]}
    static = ("trouble",)
    targets = ("cpu",)

    def inputs(self, trouble):
        return spec((8,))

    @staticmethod
    def function(x, trouble):
        if not jax.config.values["jax_cpu_enable_async_dispatch"]:
            if trouble == "raise":
                raise ValueError("not inline")
            if trouble == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
        return x + 1
