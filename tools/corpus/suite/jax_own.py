"""The programs of jax_own as workloads."""

from tools.corpus.declared import workloads
from tools.corpus.programs import jax_own

globals().update(workloads(__name__, jax_own.PROGRAMS))
