"""Diffrax: solvers that compute tables of numbers while they are traced."""

import diffrax

from harness import Workload, spec


def solve(y0, solver, tolerance):
    """Solve y' = -y."""
    controller = diffrax.PIDController(rtol=tolerance, atol=tolerance)
    decay = diffrax.ODETerm(lambda t, y, args: -y)
    return diffrax.diffeqsolve(decay, solver, 0, 1, 0.1, y0, stepsize_controller=controller).ys


class Tsit5(Workload):
    """An explicit solver."""

    targets = ("cpu",)

    def inputs(self):
        return spec((3,))

    function = staticmethod(lambda y0: solve(y0, diffrax.Tsit5(), 1e-5))


class Kvaerno3(Tsit5):
    """An implicit solver, which also builds programs while it is lowered."""

    function = staticmethod(lambda y0: solve(y0, diffrax.Kvaerno3(), 1e-3))
