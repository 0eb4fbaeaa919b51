"""The programs of pyhpc as workloads."""

from tools.corpus.declared import workloads
from tools.corpus.programs import pyhpc

globals().update(workloads(__name__, pyhpc.PROGRAMS))
