"""Computation over several devices."""

from harness import Workload, spec


class ShardedMatmul(Workload):
    """Matrix product on one device, on operands sharded by rows, and one product per device.

    Sharding both operands over their leading axis splits the contracted axis of the second, so
    the partitioner must insert a collective. `pmap` has an operand pair per device and
    communicates nothing: it shows the cost of parallel dispatch alone.
    """

    transforms = ("forward", "sharded", "pmap")

    def inputs(self):
        return spec((256, 256)), spec((256, 256))

    @staticmethod
    def function(x, w):
        return x @ w
