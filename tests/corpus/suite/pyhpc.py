"""The programs of pyhpc as workloads."""

from tests.corpus.declared import workloads
from tests.corpus.programs import pyhpc

globals().update(workloads(__name__, pyhpc.PROGRAMS))
