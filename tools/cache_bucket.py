"""A cache in a bucket: one process fills it, others read it, over a slow and faulty network.

    pip install 'etils[epath]' s3fs 'moto[server]'
    python -m tools.cache_bucket

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
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from harness.cache.ledger import read, summarize
from tests import forks
from tests.cache.filled import START, environment
from tools.cache_healthy import THREE


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


def main() -> None:
    """Print a row for each network and process."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    between, address = serve()
    os.environ |= {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    import boto3

    boto3.client("s3").create_bucket(Bucket="team")
    print("| network | process | hits | compiled | load, median | requests | errors |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="harness-bucket-") as name:
        program, ledger = Path(name, "train.py"), Path(name, "book.jsonl")
        program.write_text(START + THREE)
        for number, network in enumerate(NETWORKS):
            where = f"s3://team/cache{number}"
            for process in ("fills", "reads", "reads too"):
                between.network, between.requests = network, 0
                ledger.unlink(missing_ok=True)
                words = "cache", "ledger", "-o", ledger, "--", program
                done = forks.harness(*words, environment=environment(where))
                assert not done.returncode, done.stderr
                events = read(ledger).events
                summary = summarize(events)
                loads_s = [e.load_ns / 1e9 for e in events if e.outcome == "hit"]
                load = f"{statistics.median(loads_s) * 1e3:.0f} ms" if loads_s else ""
                errors = summary.read_errors + summary.write_errors
                print(
                    f"| {network.name} | {process} | {summary.hits} of {summary.requests} | "
                    f"{summary.requests - summary.hits} | {load} | {between.requests} | {errors} |",
                    flush=True,
                )
            between.network = NETWORKS[0]
            words = "cache", "doctor", where, "--no-put-cost", "--format=json"
            done = forks.harness(*words, environment=environment(where))
            state = json.loads(done.stdout)["state"] if done.stdout else done.stderr.strip()
            print(f"| | doctor | {state} | | | | |", flush=True)


if __name__ == "__main__":
    main()
