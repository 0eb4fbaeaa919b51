"""A workload that is declared wrongly, one that raises, and one that is right."""

from harness import Workload, spec


class Wrong(Workload):
    """Names a static argument that its function does not take."""

    sweep = {"steps": [1, 2]}
    static = ("steps",)

    def inputs(self):
        return spec((4,))

    @staticmethod
    def function(x):
        return x


class Right(Workload):
    """Adds one."""

    def inputs(self):
        return spec((4,))

    @staticmethod
    def function(x):
        return x + 1


class Raising(Right):
    """Cannot be traced."""

    @staticmethod
    def function(x):
        raise ValueError("this workload cannot be traced")
