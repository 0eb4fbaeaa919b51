"""What asv shows of the program that was built, and of workloads that sweep the precision."""

import pytest

from harness import Workload, spec
from harness.asv import suite
from harness.asv.call import AsvCall
from harness.asv.metrics import answers as answers_of
from harness.declare.workload import Case, enumerate_cases, name_of
from harness.program.facts import Facts
from tests.frame.comparisons import xla
from tests.frame.trees import failed, record


class Product(Workload):
    sweep = {"size": [8, 16]}
    precisions = ("ieee", "tf32")
    targets = ("cpu",)

    def inputs(self, size):
        return spec((size, size)), spec((size, size))

    @staticmethod
    def function(x, y):
        return x @ y


def answers(*records):
    for one in records:
        one.workload = name_of(Product)
    return answers_of(Product, list(records))


def of(case, process=0, **fields):
    about = {"axes": dict(case.axes), "precision": case.precision, "key": case.id}
    return record(process, **about, **fields)


CASES = list(enumerate_cases(Product))


def look_up(found, stage, case=CASES[0]):
    return suite.look_up(Product, found, stage, tuple(case.coordinates.values()))


def test_a_fact_on_which_processes_agree_is_one_value():
    facts = Facts(launches=3, flops=2.5)
    found = answers(of(CASES[0], 0, facts=facts), of(CASES[0], 1, facts=facts), of(CASES[0], 2))
    assert look_up(found, "launches") == {"samples": [3.0], "number": 1}
    assert look_up(found, "flops") == {"samples": [2.5], "number": 1}


def test_a_fact_on_which_processes_disagree_fails_with_both():
    found = answers(
        of(CASES[0], 0, facts=Facts(launches=3)), of(CASES[0], 1, facts=Facts(launches=4))
    )
    with pytest.raises(suite.MeasurementFailed, match="launches is 3, 4"):
        look_up(found, "launches")


def test_a_fact_that_nobody_knows_is_not_available():
    from asv_runner.benchmarks.mark import SkipNotImplemented

    found = answers(of(CASES[0], facts=Facts(launches=3)))
    with pytest.raises(SkipNotImplemented, match="neither JAX nor the back end"):
        look_up(found, "code_bytes")


def test_a_case_that_failed_has_failed_facts():
    case = CASES[0]
    found = answers(failed(axes=dict(case.axes), precision=case.precision, reason="ValueError: no"))
    with pytest.raises(suite.MeasurementFailed, match="ValueError: no"):
        look_up(found, "launches")


def test_a_workload_that_is_only_measured_with_a_cache_has_the_facts_of_a_cold_one():
    found = answers(of(CASES[0], scenario="cold", facts=Facts(launches=3)))
    assert look_up(found, "launches")["samples"] == [3.0]


def test_precisions_are_cases_of_their_own():
    records = [of(case, facts=Facts(launches=n)) for n, case in enumerate(CASES)]
    found = answers(*records)
    assert [look_up(found, "launches", case)["samples"] for case in CASES] == [[0], [1], [2], [3]]
    assert suite.case_at(Product, (16, "tf32", "forward", "cpu")) == Case(
        {"size": 16}, "forward", "cpu", "tf32"
    )


def test_a_comparison_is_no_ordinary_measurement():
    (side,) = xla([1e3], axes={"size": 8}, precision="ieee")
    assert answers(side)["cases"] == {}


def test_bench_selects_by_a_fact():
    call = AsvCall(bench=(r"track_facts\('launches', 16, 'tf32', 'forward', 'cpu'\)",))
    assert [case for case in CASES if call.selects(Product, case)] == [CASES[3]]
