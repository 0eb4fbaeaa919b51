import pytest

from harness.frame.load import frame_of
from harness.output.tables import (
    call_table,
    longest_text,
    process_text,
    program_texts,
    reason_texts,
    stage_table,
)
from harness.records.distribution import Distribution
from harness.records.schema import StageSamples
from harness.stages.registry import CASE_STAGES
from tests.frame.trees import failed, record


def test_a_row_per_case_with_a_column_per_stage():
    odd = {"trace": StageSamples(reason="none"), "compile": StageSamples(refused={"hit": 1})}
    fast, slow = ({"size": size, "fast": size == 8} for size in (8, 16))
    frame = frame_of(
        [
            *(record(n, {"trace": [4.1e6], "execute": [48e3]}, axes=fast) for n in range(2)),
            record(0, odd, axes=slow, transform="vmap", target="gpu"),
            failed(0, axes={"size": 32}),
        ]
    )
    table = stage_table(frame)
    assert list(table.columns) == [
        *("workload", "axes", "trace", "lower", "compile"),
        *("dispatch", "execute", "compute", "in_flight"),
    ]
    assert table["axes"].tolist() == [
        *("size=8, fast=True", "size=32", "size=16, fast=False, transform=vmap, target=gpu")
    ]
    assert table["trace"].tolist() == ["4.1 ms", "failed", "n/a"]
    assert table["execute"].tolist() == ["≥ 48 µs", "failed", ""]
    assert table["compile"].tolist() == ["", "failed", "refused"]
    assert stage_table(frame_of([])).empty
    only = stage_table(frame[frame["stage"] == "compile"])
    assert list(only.columns) == ["workload", "axes", "compile"]


def test_half_of_the_interval_is_shown_where_there_is_one():
    frame = frame_of([record(n, {"trace": [(38 + n) * 1e5]}) for n in range(7)])
    assert stage_table(frame)["trace"].tolist() == ["4.1 ± 0.3 ms"]


def test_what_tells_equal_cases_apart_is_named_and_instruments_are_no_cases():
    cases = [record(), record(effort="quick", commit="")]
    instruments = [record(workload="process"), record(workload="reference")]
    assert sorted(stage_table(frame_of([*instruments, *cases]))["axes"]) == [
        "size=8, commit=01234567, effort=default",
        "size=8, commit=none, effort=quick",
    ]


def test_the_time_of_a_call_is_the_median_and_the_least_stands_beside_it():
    taken = StageSamples([17e3], calls=Distribution.of([17e3, 30e3, 65e3, 90e3, 99e3]))
    frame = frame_of(
        [record(0, {"execute": taken, "in_flight": [20e3]}), record(0, {"execute": [3e3]}, axes={})]
    )
    assert sorted(stage_table(frame)["execute"]) == ["65 µs", "≥ 3.0 µs"]
    rows = call_table(frame).drop(columns=["workload", "axes"]).to_numpy().tolist()
    assert sorted(rows) == [
        ["execute", "17 µs", "22 µs", "65 µs", "95 µs", "15,385", "5"],
        ["execute", "3.0 µs", "", "", "", "", ""],
        ["in_flight", "", "", "20 µs", "", "50,000", ""],
    ]


def test_programs_that_were_built_inside_of_a_stage_have_a_line():
    inside = StageSamples([62e6], programs=[2], programs_ns=[35e6])
    frame = frame_of([record(0, {"trace": inside}, axes={"size": n}) for n in range(12)])
    lines = program_texts(frame)
    assert lines[0] == "family.Work size=0: trace 62 ms, of which 2 programs 35 ms"
    assert lines[10:] == ["... and 2 more: see the column `programs`"]


def test_what_a_process_pays_once_is_told_by_stage():
    paid = {"import": [9e8], "backend": [5e7]}
    frame = frame_of([record(n, paid, workload="process") for n in (0, 1)])
    assert process_text(frame) == "Once per process: import 900 ms, backend 50 ms"
    assert process_text(frame_of([record()])) == ""


def test_a_reason_names_its_stages_and_its_only_case():
    taken = StageSamples([2e4], reason="nothing is in flight")
    frames = [record(0, {"execute": [2e4], "in_flight": taken}, axes={"size": n}) for n in (1, 2)]
    assert reason_texts(frame_of(frames)) == ["family.Work, in_flight: nothing is in flight"]
    (line,) = reason_texts(frame_of(frames[:1]))
    assert line == "family.Work size=1, in_flight: nothing is in flight"
    none = StageSamples([], reason="a call takes long")
    frame = frame_of([record(n, {"in_flight": none if n else [2e4]}) for n in range(3)])
    said = "2 of 3 processes have no value: a call takes long"
    assert reason_texts(frame) == [f"family.Work size=8, in_flight: {said}"]


ONE, OTHER = {"trace": [4e6], "compile": [38e6]}, {"trace": [5e6], "compile": [30e6]}


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        (
            [ONE, OTHER],
            "compile takes longest in 2 of 2 cases, most in family.Work size=0: 38 ms.",
        ),
        ([ONE], "compile takes longest in family.Work size=0: 38 ms."),
        (
            [ONE, OTHER, {"compile": [9e6], "execute": [4e9]}],
            "compile takes longest in 2 of 3 cases, most in family.Work size=0: 38 ms. "
            "The longest of all is execute of family.Work size=2: ≥ 4.0 s.",
        ),
        (
            [{"trace": [4e6]}, {"trace": [5e6]}],
            "trace takes most in family.Work size=1: 5.0 ms, of 2 cases.",
        ),
        ([], "No case has a time."),
    ],
)
def test_the_answer_is_which_stage_takes_longest_and_where_most(cases, said):
    records = (record(0, stages, axes={"size": n}) for n, stages in enumerate(cases))
    assert longest_text(frame_of(records)) == said


def test_the_answer_counts_what_failed():
    said = f"No case has a time. {len(CASE_STAGES)} rows failed or refused; the reasons are below."
    assert longest_text(frame_of([failed(0)])) == said
