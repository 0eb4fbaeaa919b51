"""Run one side of a comparison in the test's own process, with a side that the test may break."""

import tempfile

from harness.declare import location
from harness.declare.location import Source
from harness.declare.workload import enumerate_cases
from harness.engine.board import SIZE, Board
from harness.engine.unit import CaseRef, Done, Unit
from harness.records.schema import SCHEMA
from harness.sides import registry
from harness.sides.session import Process, Session
from harness.sides.visiting import measure
from tests.sweeps import SUITES


def compared(module, name):
    """Return a class of the suite `compared`."""
    file = SUITES / "compared" / f"{module}.py"
    return getattr(location.import_file(f"compared.{module}", file), name)


def base(target):
    """Return what a sweep writes into each record of a unit."""
    return {
        **dict.fromkeys(
            ("replicate", "workload", "version", "machine", "env", "commit", "protocol", "effort"),
            "",
        ),
        **dict.fromkeys(("sweep", "python", "jax", "jaxlib"), ""),
        "schema": SCHEMA,
        "target": target,
        "scenario": "off",
        "commit_date_ms": None,
        "seed": 0,
    }


def run(workload, backend, side=None, threads="all", passes=1, cores=64, keep=lambda case: True):
    """Return the records of one process's visits; `side` stands in for the backend's own."""
    refs = [
        CaseRef(index, case.id, f"key{index}")
        for index, case in enumerate(enumerate_cases(workload, ["cpu"]))
        if keep(case)
    ]
    asked = Unit(
        source=Source("", ""),
        target="cpu",
        platforms="cpu",
        cpu_devices=0,
        x64=False,
        cases=refs,
        passes=passes,
        seed=0,
        process_key="",
        reference_key="",
        base=base("cpu"),
        backend=backend,
        threads=threads,
    )
    records = []

    def send(message):
        if isinstance(message, Done):
            records.append(message.record)

    with tempfile.TemporaryFile() as file:
        file.truncate(SIZE)
        board = Board(file.fileno())
        side = side or registry.find(backend)("cpu")
        measure(Session(asked, workload, send, board, Process(cores)), side)
        board.close()
    proof = getattr(side, "proof", None)
    if proof:
        proof.close()
    return records


def run_one(*arguments, **options):
    """Return the one record that a run gives."""
    (record,) = run(*arguments, **options)
    return record
