"""Sweeps over many machines.

The client (:mod:`harness.fleet.sweep`) asks what the workers are (:mod:`harness.fleet.place`),
sends them jobs (:mod:`harness.fleet.remote` carries them out), and stores the records that come
back. How it reaches them is a pool's business: Dask's (:mod:`harness.fleet.dask_pool`), or that of
any executor with the shape of `concurrent.futures.Executor`.
"""
