"""The programs of libraries as workloads."""

from tools.corpus.declared import workloads
from tools.corpus.programs import libraries

globals().update(workloads(__name__, libraries.PROGRAMS))
