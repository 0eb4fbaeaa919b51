"""Python's calls in real programs: found where there are more, equal where nothing changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.program.calls import calls
from harness.verdicts import counts
from tests.sweeps import SUITES

pytest.importorskip("equinox")

CODE = """
import json, random, sys
from pathlib import Path

from harness.workload.location import import_file
from harness.workload.workload import enumerate_cases
from harness.stages.build import count_calls
from harness.stages.prepared import prepare

kinds = import_file("calls.added", Path(sys.argv[1])).KINDS
ready = [prepare(kind, case) for kind in kinds for case in enumerate_cases(kind, ["cpu"])]
if sys.argv[2] != "0":
    random.Random(sys.argv[2]).shuffle(ready)
found = {}
for one in ready:
    for _ in range(int(sys.argv[2]) + 2):
        found[f"{one.workload.__name__} {one.case.axes['added']}"] = count_calls(one)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def counted() -> list[dict]:
    """Return the counts of each kind, as it is and with 3 % more operations, in two processes.

    The second has another hash seed, another order of cases, and one pass more over each.
    """
    found = []
    for seed in ("0", "1"):
        variables = {**os.environ, "PYTHONHASHSEED": seed, "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-c", CODE, str(SUITES / "calls" / "added.py"), seed]
        folder = Path(__file__).parents[2]
        run = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        found.append(json.loads(run.stdout))
    return found


def proof(stage, a, b):
    about = {"stage": stage, "python": "3.11.7", "jax": "0.10.2", "jaxlib": "0.10.2"}
    return counts.proof({**about, **a}, {**about, **b})


@pytest.mark.nightly
@pytest.mark.parametrize("stage", ["trace", "lower"])
def test_three_percent_more_operations_are_proven_and_identical_code_never_is(counted, stage):
    one, other = counted
    kinds = dict.fromkeys(name.split()[0] for name in one)
    found = {kind: proof(stage, one[f"{kind} 0"], other[f"{kind} 1"]) for kind in kinds}
    fewer = {kind: proof(stage, one[f"{kind} 1"], other[f"{kind} 0"]) for kind in kinds}
    false = {name: proof(stage, one[name], other[name]) for name in one}

    assert len(kinds) == 8
    assert [kind for kind, proven in found.items() if not (proven and proven.rose)] == []
    assert [kind for kind, proven in fewer.items() if not proven or proven.rose] == []
    assert [name for name, proven in false.items() if proven] == []


class Key:
    def __init__(self, number, hash_of):
        self.number, self.hash_of = number, hash_of

    def __hash__(self):
        return self.hash_of(self.number)

    def __eq__(self, other):
        return isinstance(other, Key) and abs(self.number) == abs(other.number)


def test_how_often_hashes_meet_changes_no_count():
    def table(hash_of):
        return lambda: {Key(number, hash_of): number for number in range(20)}

    apart, together = calls(table(lambda n: abs(n))), calls(table(lambda n: 0 * abs(n)))
    assert apart == together > 60


def test_calls_of_python_and_c_functions_count_and_another_profiler_stays():
    def step():
        return len([abs(one) for one in map(lambda x: x, range(3))])

    seen = []
    sys.setprofile(lambda *event: seen.append(event))
    try:
        count, again = calls(step), calls(step)
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    assert count == again >= 8
    with pytest.raises(ZeroDivisionError):
        calls(lambda: 1 / 0)
    assert sys.getprofile() is None
