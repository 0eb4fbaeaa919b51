"""The programs of npbench as workloads."""

from tests.corpus.declared import workloads
from tests.corpus.programs import npbench

globals().update(workloads(__name__, npbench.PROGRAMS))
