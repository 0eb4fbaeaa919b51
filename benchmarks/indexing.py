"""Indexing: reads and writes at positions known only at run time."""

from harness import Workload, spec


class Gather(Workload):
    """Rows looked up in an embedding table, and the gradient with respect to the table.

    The forward pass touches only the rows asked for; its gradient is a scatter-add into zeros of
    the size of the whole table, so even a few rows cost a pass over all of it.
    """

    sweep = {"count": [64, 4096]}
    transforms = ("forward", "gradient")

    def inputs(self, count):
        return spec((8192, 64)), spec((count,), "int32", low=0, high=8192)

    @staticmethod
    def function(table, indices):
        return table[indices]

    @staticmethod
    def baseline(xp, table, indices):
        return xp.take(table, indices, axis=0)


class ScatterAdd(Workload):
    """Segment sum by scatter-add: updates that collide, into few segments or into many.

    The number of updates is the same for both, so the cases differ in how often two updates meet
    in one segment, and in how much of the output stays in cache.
    """

    sweep = {"segments": [16, 8192]}

    def inputs(self, segments):
        return spec((segments, 64)), spec((4096,), "int32", low=0, high=segments), spec((4096, 64))

    @staticmethod
    def function(totals, indices, updates):
        return totals.at[indices].add(updates)
