"""The programs of jax_own as workloads."""

from tests.corpus.declared import workloads
from tests.corpus.programs import jax_own

globals().update(workloads(__name__, jax_own.PROGRAMS))
