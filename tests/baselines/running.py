"""Run one side of a comparison in the test's own process, with a side that the test may break."""

import tempfile

import msgspec

from harness.baselines import registry
from harness.baselines.side_process import ProcessState
from harness.measure.compared import about, measure_side
from harness.measure.job import SIZE, CurrentVisit, Done, Job, JobCase
from harness.measure.session import Session
from harness.records.schema import SCHEMA, Record
from harness.workload import location
from harness.workload.code import LoadedCode
from harness.workload.location import Source
from harness.workload.workload import enumerate_cases
from tests.sweeps import SUITES


def compared(module, name):
    """Return a class of the suite `compared`."""
    file = SUITES / "compared" / f"{module}.py"
    return getattr(location.import_file(f"compared.{module}", file), name)


def base(target):
    """Return what a sweep writes into each record of a unit."""
    needed = (field.name for field in msgspec.structs.fields(Record) if field.required)
    known = {"schema": SCHEMA, "target": target, "scenario": "off", "commit_date_ms": None}
    return {**dict.fromkeys(needed, ""), **known, "seed": 0}


def run(workload, backend, side=None, threads="all", passes=1, cores=64, keep=lambda case: True):
    """Return the records of one process's visits; `side` stands in for the backend's own."""
    refs = [
        JobCase(index, case.id, f"key{index}")
        for index, case in enumerate(enumerate_cases(workload, ["cpu"]))
        if keep(case)
    ]
    job = {"source": Source("", ""), "target": "cpu", "platforms": "cpu", "base": base("cpu")}
    asked = Job(**job, cases=refs, passes=passes, backend=backend, threads=threads)
    records = []

    def send(message):
        if isinstance(message, Done):
            records.append(message.record)

    with tempfile.TemporaryFile() as file:
        file.truncate(SIZE)
        current = CurrentVisit(file.fileno())
        side = side or registry.find(backend)("cpu")
        session = Session(asked, workload, send, current, LoadedCode(), about=about(asked, side))
        measure_side(session, side, ProcessState(cores))
        current.close()
    proof = getattr(side, "proof", None)
    if proof:
        proof.close()
    return records


def run_one(*arguments, **options):
    """Return the one record that a run gives."""
    (record,) = run(*arguments, **options)
    return record
