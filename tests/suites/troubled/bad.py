"""Workloads that misbehave, each with a case that does not."""

import os
import signal
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np

from harness import Workload, spec

TROUBLES = ["none", "raise", "abort", "kill", "exit", "hang", "memory", "eager", "not_inputs"]


class Troubled(Workload):
    """Does what `trouble` says while it is traced."""

    sweep = {"trouble": TROUBLES}
    static = ("trouble",)
    targets = ("cpu",)

    def inputs(self, trouble):
        return "four" if trouble == "not_inputs" else spec((8,))

    @staticmethod
    def function(x, trouble):
        if trouble == "raise":
            raise ValueError("this workload cannot be traced")
        if trouble == "abort":
            print("about to abort", file=sys.stderr, flush=True)
            os.abort()
        if trouble == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == "exit":
            os._exit(7)
        if trouble == "hang":
            time.sleep(3600)
        if trouble == "memory":
            held = []
            while True:
                held.append(np.ones(2**24))
        if trouble == "eager":
            with jax.ensure_compile_time_eval():
                jnp.sin(jnp.arange(3.0)).block_until_ready()
        return x + 1


class Printing(Workload):
    """Prints where the harness talks to it."""

    targets = ("cpu",)

    def inputs(self):
        print("noise on standard output")
        return spec((8,))

    @staticmethod
    def function(x):
        print('{"type":"done"}')
        return x + 1


class Drawing(Workload):
    """Has a size that numpy's own generator gives."""

    targets = ("cpu",)

    def inputs(self):
        return spec((np.random.randint(1, 10**6),))

    function = staticmethod(lambda x: x + 1)


class DrawingToo(Drawing):
    """Has another one."""


class Skipping(Workload):
    """Does not want its second case measured."""

    sweep = {"size": [8, 16]}
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size,))

    def skip(self, size, **case):
        return "sixteen is too many" if size == 16 else None

    function = staticmethod(lambda x: x + 1)


class Beside(Workload):
    """Has another thread compile while it is traced."""

    targets = ("cpu",)

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        beside = threading.Thread(target=jax.jit(lambda x: x * 5), args=[np.ones(4)])
        beside.start()
        beside.join()
        return x + 1


def looked_up(x):
    """Return the rows of a table that the program looks up as it runs."""
    if len(x) == 16:
        raise KeyError("no table for 16")
    return np.asarray(x)


class LookedUp(Workload):
    """Asks Python for a table when it is called, which has none of one size."""

    sweep = {"size": [8, 16]}
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size,))

    @staticmethod
    def function(x):
        return jax.pure_callback(looked_up, jax.ShapeDtypeStruct(x.shape, x.dtype), x * 2)


def killing(x):
    if x.size == 16:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.asarray(x)


class KilledWhenCalled(LookedUp):
    """Is killed when it is called, at one size."""

    @staticmethod
    def function(x):
        return jax.pure_callback(killing, jax.ShapeDtypeStruct(x.shape, x.dtype), x * 2)
