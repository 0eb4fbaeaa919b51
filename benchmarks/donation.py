"""Buffer donation: an update of one row of a buffer, with and without a copy of the rest."""

from harness import Workload, spec


class CopiedUpdate(Workload):
    """One row written into a buffer that the caller keeps: XLA must copy the buffer first.

    The copy takes nearly all of the time, and input and output are both live, which doubles the
    memory needed.
    """

    def inputs(self):
        return spec((1024, 1024)), spec((), "int32", low=0, high=1024), spec((1024,))

    @staticmethod
    def function(buffer, index, row):
        return buffer.at[index].set(row)


class DonatedUpdate(Workload):
    """The update of `CopiedUpdate` in place: the donated buffer becomes the output.

    No copy remains, so the time is that of one row and the output aliases the input.
    """

    donate = ("buffer",)

    def inputs(self):
        return spec((1024, 1024)), spec((), "int32", low=0, high=1024), spec((1024,))

    @staticmethod
    def function(buffer, index, row):
        return buffer.at[index].set(row)
