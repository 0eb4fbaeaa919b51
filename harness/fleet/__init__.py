"""Sweeps over many machines.

:mod:`harness.fleet.pools` reaches workers, of Dask or of any executor. The client
(:mod:`harness.fleet.sweep`) asks them what they are (:mod:`harness.fleet.place`), sends them orders
(:mod:`harness.fleet.order`) and stores what comes back; a case stays with its class of machine
(:mod:`harness.fleet.tasks`).
"""
