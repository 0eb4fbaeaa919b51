"""A workload that is declared wrongly, beside one that is not."""

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
