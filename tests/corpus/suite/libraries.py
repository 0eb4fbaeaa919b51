"""The programs of libraries as workloads."""

from tests.corpus.declared import workloads
from tests.corpus.programs import libraries

globals().update(workloads(__name__, libraries.PROGRAMS))
