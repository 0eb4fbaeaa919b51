"""A fleet's records in a bucket: put there by workers, resumed from there, and read back.

    pip install s3fs 'moto[server]'
    python -m tools.fleet_bucket

Moto stands in for S3, as a server of its own. Two workers of a real scheduler measure a small suite
with `--store s3://...`; the same command is run once more; then a copy of the bucket is loaded.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fsspec

from harness.frame.load import load
from harness.records.store import Store, record_files
from tools.fleet_kills import suite
from tools.performance.fleet_processes import fleet, free_port

STORE = "s3://records/night"


def started(port: int) -> subprocess.Popen[bytes]:
    """Start a server of S3's protocol, and have it used by all that this process starts."""
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-m", "moto.server", "-p", str(port)]
    return subprocess.Popen(command, stdout=quiet, stderr=quiet)


def main() -> None:
    """Measure twice, and print what became of it."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        started(free_port()) as server,
        fleet(Path(scratch), ("alpha", "beta")) as on,
    ):
        try:
            suite(on.project, 3, 4)
            time.sleep(5)  # until the server listens
            on.start()
            on.wait(2)
            command = [sys.executable, "-m", "harness", "run", "--on", on.address]
            command += ["--effort", "2x1", "--store", STORE]
            for turn in ("first", "again"):
                there = {**on.environment(), "HARNESS_COMPUTE": "0"}
                done = subprocess.run(
                    command, cwd=on.project, env=there, capture_output=True, text=True
                )
                assert done.returncode == 0, done.stdout + done.stderr
                said = re.findall(r"\d+ measured[^.\n]*", done.stdout + done.stderr)
                files = fsspec.filesystem("s3", use_listings_cache=False)
                print(f"{turn}: {said[-1]}; {len(files.find(STORE))} objects in the bucket")
            files.get(STORE, f"{scratch}/copy", recursive=True)
            records = [r for one in record_files(Path(scratch, "copy")) for r in Store(one).read()]
            frame = load(Path(scratch, "copy"))
            print(f"a copy: {len(records)} records, {len(frame)} rows, all {set(frame['status'])}")
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
