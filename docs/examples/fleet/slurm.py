"""Run a sweep on workers that Slurm starts; needs dask-jobqueue (`pip install dask-jobqueue`).

    python docs/examples/fleet/slurm.py 4 Gelu --effort 6x1

starts four jobs, one worker each, and runs `harness run` with what follows. Start it where `sbatch`
works. The jobs end with the sweep.
"""

import subprocess
import sys

from dask_jobqueue import SLURMCluster

jobs, *words = sys.argv[1:]
cluster = SLURMCluster(
    processes=1,
    cores=1,
    job_cpu=8,  # what is measured may use all of them
    memory="32GB",
    walltime="08:00:00",
    job_extra_directives=["--exclusive"],  # for GPUs "--gpus=1"
    local_directory="/tmp",
)
with cluster:
    cluster.scale(jobs=int(jobs))
    command = ["harness", "run", "--on", cluster.scheduler_address, "--wait", "3600", *words]
    sys.exit(subprocess.run(command, check=False).returncode)
