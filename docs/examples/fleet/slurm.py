"""Run a sweep on workers that Slurm starts; needs dask-jobqueue (`pip install dask-jobqueue`).

    python docs/examples/fleet/slurm.py --jobs 4 --partition gpu --target gpu -- Gelu --effort 6x1

Start it where `sbatch` works, in the folder that holds benchmarks/, on a file system that the nodes
see. What stands after `--` goes to `harness run`. The jobs are ended with the sweep.
"""

import argparse
import subprocess
import sys

from dask_jobqueue import SLURMCluster
from distributed import Client

parser = argparse.ArgumentParser(description="Run a sweep on workers that Slurm starts.")
parser.add_argument("--jobs", type=int, default=2, help="workers: one job each")
parser.add_argument("--partition")
parser.add_argument("--account")
parser.add_argument("--target", default="cpu", help="what a worker is there for: cpu, gpu, ...")
parser.add_argument("--cpus", type=int, default=8, help="of one job")
parser.add_argument("--memory", default="32GB", help="of one job")
parser.add_argument("--walltime", default="08:00:00")
parser.add_argument("--wait", type=float, default=3600, help="seconds until the first job runs")
parser.add_argument("run", nargs="*", help="arguments of `harness run`")


def main() -> int:
    """Start the workers, run the sweep, and return its exit code."""
    options = parser.parse_args()
    own = ["--gpus=1"] if options.target == "gpu" else ["--exclusive"]
    cluster = SLURMCluster(
        queue=options.partition,
        account=options.account,
        walltime=options.walltime,
        # One worker per job with one thread: it carries out one order at a time. What it measures
        # may use all of the job's CPUs.
        processes=1,
        cores=1,
        job_cpu=options.cpus,
        memory=options.memory,
        job_extra_directives=own,
        worker_extra_args=["--resources", f"{options.target}=1", "--no-dashboard"],
        scheduler_options={"dashboard": False},
        local_directory="/tmp",
    )
    with cluster, Client(cluster) as client:
        print(cluster.job_script())
        cluster.scale(jobs=options.jobs)
        # Jobs that start later join the sweep.
        client.wait_for_workers(1, timeout=options.wait)
        command = [sys.executable, "-m", "harness", "run", "--on", cluster.scheduler_address]
        with subprocess.Popen([*command, *options.run]) as run:
            try:
                return run.wait()
            except KeyboardInterrupt:  # it gets Ctrl-C as well, and ends what is measured
                return run.wait()


if __name__ == "__main__":
    sys.exit(main())
