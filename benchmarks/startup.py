"""The floor under every other number."""

from harness import Workload, spec


class Smallest(Workload):
    """The smallest program: what is paid before and around any computation.

    One addition on eight floats computes nothing to speak of, so its trace, lowering, compile and
    dispatch times are the fixed cost contained in those of every other workload. asv shows
    here, too, what a process pays once: importing JAX, waking its backend, and the first program
    that it lowers and compiles.
    """

    process_stages = True

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return x + 1
