"""The programs of npbench as workloads."""

from tools.corpus.declared import workloads
from tools.corpus.programs import npbench

globals().update(workloads(__name__, npbench.PROGRAMS))
