"""Sweeps over many machines.

The client (:mod:`harness.fleet.sweep`) asks workers what they are (:mod:`harness.fleet.place`),
sends them orders (:mod:`harness.fleet.remote` carries them out), and stores the records that come
back. :mod:`harness.fleet.pools` reaches the workers, of a Dask scheduler or of any executor.
"""
