"""A cache in a bucket: one process fills it, others read it, over a slow and faulty network.

    pip install 'etils[epath]' s3fs 'moto[server]'
    python -m tests.cache.bucket

A server on this machine speaks S3 (moto); between it and JAX each request waits, and some are
answered with an error, or with the list of a moment ago. For each network: what the ledger says of
the process that fills and of two that read, how long a hit takes there, and whether `doctor` and
`inspect` can read the bucket.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from harness.cache.ledger import read, summarize

PROGRAM = """
import jax, numpy as np
def one(x): return (x @ x).sum()
def two(x): return x * 3 - 1
def three(x): return (x.T @ x).max()
for f in (one, two, three):
    jax.block_until_ready(jax.jit(f)(np.ones((64, 64), np.float32)))
"""


@dataclass(frozen=True)
class Network:
    """What happens to a request on its way."""

    name: str
    latency_s: float = 0.0
    failing: float = 0.0
    """The share that is answered with an error."""
    stale_s: float = 0.0
    """So old is the list of names that is answered."""


NETWORKS = (
    Network("as it is"),
    Network("50 ms a request", latency_s=0.05),
    Network("200 ms a request", latency_s=0.2),
    Network("3 of 10 requests fail", failing=0.3),
    Network("every request fails", failing=1.0),
    Network("lists are 5 s old", stale_s=5.0),
)


class Between:
    """A WSGI application between JAX and the store."""

    def __init__(self, store) -> None:
        self.store = store
        self.network = NETWORKS[0]
        self.requests = 0
        self._lists: dict[str, tuple[float, list[bytes], tuple]] = {}
        self._random = random.Random(0)

    def __call__(self, environ, start_response):
        self.requests += 1
        network = self.network
        time.sleep(network.latency_s)
        if self._random.random() < network.failing:
            start_response("503 Slow Down", [("Content-Type", "text/xml")])
            return [b"<Error><Code>SlowDown</Code><Message>injected</Message></Error>"]
        query = environ.get("QUERY_STRING", "")
        if not network.stale_s or "list-type" not in query:
            return self.store(environ, start_response)
        at, body, head = self._lists.get(query, (0.0, [], ()))
        if time.monotonic() - at > network.stale_s:
            said = []
            body = list(self.store(environ, lambda *head: said.append(head)))
            head = said[0]
            self._lists[query] = time.monotonic(), body, head
        start_response(*head[:2])
        return body


def serve() -> tuple[Between, str]:
    """Start the store, and return what is in front of it and its address."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    between = Between(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, between, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return between, f"http://127.0.0.1:{server.port}"


def start(folder: Path, name: str, where: str, address: str) -> Path:
    """Run the program in a process with a ledger, and return the ledger."""
    ledger = folder / f"{name}.jsonl"
    command = ["ledger", "-o", str(ledger), "--", str(folder / "train.py")]
    subprocess.run(
        [sys.executable, "-m", "harness", "cache", *command],
        env=variables(where, address),
        capture_output=True,
        check=True,
        timeout=300,
    )
    return ledger


def variables(where: str, address: str) -> dict[str, str]:
    """Return the environment of a process whose cache is in the bucket."""
    return {
        **os.environ,
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": where,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


def main() -> None:
    """Print a row for each network and process."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    between, address = serve()
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=address,
        aws_access_key_id="nobody",
        aws_secret_access_key="nothing",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="team")
    print("| network | process | hits | compiled | load, median | requests | errors |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="harness-bucket-") as name:
        folder = Path(name)
        (folder / "train.py").write_text(PROGRAM)
        for number, network in enumerate(NETWORKS):
            where = f"s3://team/cache{number}"
            for process in ("fills", "reads", "reads too"):
                between.network, between.requests = network, 0
                ledger = start(folder, f"{number}-{process.replace(' ', '-')}", where, address)
                events = read(ledger).events
                summary = summarize(events)
                loads_s = [e.load_s for e in events if e.outcome == "hit" and e.load_s is not None]
                load = f"{statistics.median(loads_s) * 1e3:.0f} ms" if loads_s else ""
                errors = summary.read_errors + summary.write_errors
                print(
                    f"| {network.name} | {process} | {summary.hits} of {summary.requests} | "
                    f"{summary.requests - summary.hits} | {load} | {between.requests} | {errors} |",
                    flush=True,
                )
            between.network = NETWORKS[0]
            doctor = ["cache", "doctor", where, "--no-put-cost", "--json"]
            done = subprocess.run(
                [sys.executable, "-m", "harness", *doctor],
                env=variables(where, address),
                capture_output=True,
                text=True,
            )
            state = json.loads(done.stdout)["state"] if done.stdout else done.stderr.strip()
            print(f"| | doctor | {state} | | | | |", flush=True)


if __name__ == "__main__":
    main()
