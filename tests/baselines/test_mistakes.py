"""Every mistake that makes a comparison worthless is planted, noticed and named."""

import re
import time

import jax
import numpy as np
import pytest

from harness.baselines import compared_case, timing
from harness.baselines.numpy_side import NumpySide
from harness.baselines.xla_side import XlaSide
from tests.baselines.running import compared, run_one


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(timing, "BUDGET_S", 0.02)


def reasons(record):
    return "; ".join(record.comparison.reasons)


@pytest.mark.parametrize("backend", ["xla", "numpy"])
def test_without_a_mistake_both_sides_are_comparable(backend):
    record = run_one(compared("unsound", "Sound"), backend)
    assert (record.status, record.comparison.reasons) == ("ok", [])
    assert record.comparison.comparable


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Mutates", "mutated input: b is not what it was"),
        ("WrongTree", "wrong pytree: the result is"),
        ("MissingOutput", "wrong pytree"),
        (
            "WrongValues",
            "wrong values: the float64 references differ, baseline from reference by 0.001 "
            "(gate 1e-05); function agrees with reference: another function, or",
        ),
        ("WrongShape", "wrong shape: output 0 is (1, 256)"),
        ("Double", "wrong dtype: output 0 is float64, the JAX function declares float32"),
        ("Constant", "constant inputs: a is 1.0 everywhere"),
        ("NotANumber", "NaN in other places"),
        ("UsesJax", "ArrayImpl, not NumPy's"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_mistake_of_the_baseline_is_named_and_its_samples_are_kept(name, reason):
    record = run_one(compared("unsound", name), "numpy")
    assert record.status == "ok"
    assert not record.comparison.comparable
    assert reason in reasons(record)
    assert record.stages["slope"].samples_ns or record.stages["slope"].refused
    assert record.stages["latency"].samples_ns


BOTH = "differs from the float64 references of function and baseline, which agree, by"
DIFFER = "the float64 references differ, function from baseline by"


@pytest.mark.parametrize(
    ("name", "side", "said"),
    [
        ("OtherBaseline", "xla", rf"{DIFFER} 0.001 \(gate 1e-05\): another function, or one "),
        ("OtherFunction", "xla", rf"{DIFFER} 0.001 \(gate 1e-05\): another function, or one "),
        ("NarrowFunction", "xla", rf"{DIFFER} .* \(gate 1e-05\): .* less than its inputs' dtype"),
        ("CancellingBaseline", "numpy", rf"numpy {BOTH} .* \(gate 1e-05\); xla agrees with them"),
        ("CancellingFunction", "xla", rf"xla {BOTH} .* \(gate 1e-05\); numpy agrees with them"),
    ],
)
def test_what_disagrees_is_said_and_nobody_is_blamed_by_guess(name, side, said):
    (reason,) = run_one(compared("unsound", name), side).comparison.reasons
    assert re.fullmatch(f"wrong values: {said}.*", reason), reason


@pytest.mark.parametrize("name", ["CancellingBaseline", "CancellingFunction"])
def test_the_side_that_is_right_is_not_named(name):
    other = "numpy" if name == "CancellingFunction" else "xla"
    assert run_one(compared("unsound", name), other).comparison.comparable


@pytest.mark.parametrize(
    ("name", "side", "status", "said"),
    [
        (
            *("Raises", "numpy", "failed"),
            r"the numpy side raised ArithmeticError: on purpose \(at unsound.py:",
        ),
        ("Donates", "numpy", "skipped", "donated"),
        ("Uncompiled", "fused", "skipped", "a_compiler_that_is_not_there.*extra 'baselines'"),
    ],
)
def test_what_cannot_be_compared_says_why(name, side, status, said):
    record = run_one(compared("unsound", name), side)
    assert (record.status, record.comparison.comparable) == (status, False)
    assert re.search(said, record.reason)


def test_an_argument_that_xla_dropped_is_named():
    record = run_one(compared("unsound", "Unused"), "xla")
    assert record.comparison.reasons == ["argument b is not used by the program XLA built"]


def test_a_product_in_tf32_is_called_by_its_name():
    record = run_one(compared("unsound", "LooseProduct"), "numpy")
    assert "TF32 detected" in record.comparison.labels
    assert "wrong values" in reasons(record)
    assert not record.comparison.comparable


# Sides whose author has made a mistake


class DoesNotWait(XlaSide):
    """A side whose author forgot to wait."""

    def __init__(self, target):
        super().__init__(target)
        self.asynchronous = True

    def wait(self, result):
        pass

    def cache_bytes(self):
        return None


def test_a_wait_that_does_not_wait_is_missing_synchronisation(monkeypatch):
    monkeypatch.setattr(timing, "BUDGET_S", 0.001)  # it will queue far more than it believes
    record = run_one(compared("unsound", "LargeProduct"), "xla", DoesNotWait("cpu"))
    assert "missing synchronisation" in reasons(record)
    assert not record.comparison.comparable


class LeavesOnHost(XlaSide):
    """A side that does not bring its inputs to the device."""

    def put(self, arguments):
        return arguments


class Compiles(XlaSide):
    """A side that compiles once while it is timed."""

    late = staticmethod(jax.jit(lambda x: x + 1.5))

    def done(self, result):
        self.late(result)
        return super().done(result)


class CountsCompiles(NumpySide):
    """A side whose own kernel cache misses in each call that is waited for."""

    misses = 0

    def __init__(self, target):
        super().__init__()

    def wait(self, result):
        self.misses += 1

    def compiles(self):
        return {"misses": self.misses}


COMPILATION = "compilation inside the timed region"


@pytest.mark.parametrize(
    ("side", "target", "said"),
    [
        (
            *(LeavesOnHost, "cpu"),
            [
                "transfer: argument 0 is a numpy.ndarray, not an array on the device",
                "transfer inside the timed region: Disallowed host-to-device transfer",
            ],
        ),
        (XlaSide, "gpu", ["device: result 0 is on cpu, not on gpu"]),
        (Compiles, "cpu", [COMPILATION]),
        (CountsCompiles, "cpu", [COMPILATION, "misses"]),
    ],
)
def test_a_mistake_of_a_side_is_named_and_its_samples_are_kept(side, target, said):
    backend = "xla" if issubclass(side, XlaSide) else "numpy"
    record = run_one(compared("unsound", "Sound"), backend, side(target))
    assert [text for text in said if text not in reasons(record)] == []
    assert record.stages["slope"].samples_ns or record.stages["slope"].refused


@pytest.mark.parametrize(("threads", "cores"), [("one", 1), ("all", 2)])
def test_more_cores_at_work_than_allowed_are_noticed(monkeypatch, threads, cores):
    clock = time.perf_counter_ns
    monkeypatch.setattr(timing.time, "process_time_ns", lambda: int(2.3 * clock()))
    record = run_one(compared("unsound", "Sound"), "numpy", threads=threads, cores=cores)
    assert f"'{threads}' allows" in reasons(record)
    assert not record.comparison.comparable
    # The clocks are read one after the other: who is interrupted between them sees another ratio.
    assert record.comparison.cpu_per_wall == pytest.approx(2.3, rel=0.5)


def test_a_process_that_waited_for_a_processor_is_disturbed_and_still_comparable(monkeypatch):
    clock = time.perf_counter_ns
    monkeypatch.setattr(timing.time, "process_time_ns", lambda: int(0.5 * clock()))
    record = run_one(compared("unsound", "Sound"), "numpy", threads="one")
    assert "disturbed" in record.comparison.labels
    assert record.comparison.comparable


def test_large_sets_of_inputs_are_not_kept_between_visits(monkeypatch):
    monkeypatch.setattr(compared_case, "KEEP_BYTES", 0)
    puts = []

    class Counts(NumpySide):
        def put(self, arguments):
            puts.append(arguments)
            return arguments

    record = run_one(compared("unsound", "Sound"), "numpy", Counts(), passes=2)
    assert len(puts) == 2 * record.comparison.rotated
    assert not np.shares_memory(puts[0][0], puts[1][0])
