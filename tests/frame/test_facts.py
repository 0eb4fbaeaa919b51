import math

import numpy as np
import pytest

import harness
from harness.asv.metrics import FACT_METRICS, METRICS
from harness.errors import HarnessWarning, UsageError
from harness.frame.frame import ordinary
from harness.frame.load import everything, frame_of
from harness.frame.program_facts import COLUMNS
from harness.output.tables import count_text, fact_table, stage_table
from harness.program import facts
from harness.program.facts import TOTALS, Facts
from tests.frame.comparisons import numpy, xla
from tests.frame.trees import record, write, write_asv

FACTS = Facts(
    launches=3, flops=2.0, temporary_bytes=0, fusion_kinds={"loop": 2, "custom": 1}, loop_trips=[8]
)
DISAGREE = "processes built different programs: they disagree on launches"


def of(frame, **wanted):
    """Return the values of a long frame of facts by (fact, kind)."""
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    return dict(zip(zip(frame["fact"], frame["kind"], strict=True), frame["value"], strict=True))


# In the frame of times


@pytest.mark.parametrize(
    ("by_process", "known", "reason"),
    [
        ({0: FACTS, 1: FACTS, 2: None}, {"launches": 3, "flops": 2, "temporary_bytes": 0}, ""),
        (
            {0: FACTS, 1: Facts(launches=4, flops=2.0, fusions=1), 2: FACTS},
            *({"flops": 2, "fusions": 1, "temporary_bytes": 0}, DISAGREE),
        ),
    ],
)
def test_every_total_is_a_column_and_nan_where_nobody_knows_it_or_processes_disagree(
    by_process, known, reason
):
    frame = frame_of(record(process, facts=given) for process, given in by_process.items())
    (row,) = frame.to_dict("records")
    assert {name: row[name] for name in TOTALS if not math.isnan(row[name])} == known
    assert (row["status"], row["reason"]) == ("ok", reason)
    assert set(frame[list(TOTALS)].dtypes) == {np.dtype(float)}


def test_cases_keep_their_own_facts_and_what_was_replaced_contradicts_nobody():
    given = [(8, 5), (4, 9), (16, 1), (4, 7), (2, None)]
    records = (record(0, axes={"size": at}, facts=Facts(launches=n)) for at, n in given)
    frame = frame_of(records).set_index("size")
    known = frame["launches"].to_dict()
    assert known == pytest.approx({8: 5, 4: 7, 16: 1, 2: math.nan}, nan_ok=True)
    assert set(frame["reason"]) == {""}


# Rows of comparisons


def test_rows_of_comparisons_are_told_from_ordinary_ones_and_left_out_of_tables():
    wrong = {"comparable": False, "reasons": ["used 2 cores"], "labels": ["disturbed"]}
    plain = record(0, workload="softmax.Softmax", axes={"width": 4096})
    sides = [*xla([1e3, 2e3]), *numpy([1e3]), *numpy([1e3, 2e3], comparison=wrong)[1:]]
    frame = frame_of([plain, *sides])
    slopes = frame[frame["stage"] == "slope"]
    columns = ["backend", "threads", "comparable", "labels", "n_processes", "reason"]
    assert slopes[columns].to_numpy().tolist() == [
        ["xla", "one", "yes", "", 2, ""],
        ["numpy", "one", "no", "disturbed", 2, "not comparable: used 2 cores"],
    ]
    rest = ordinary(frame)
    assert rest[["stage", "backend", "comparable"]].to_numpy().tolist() == [["trace", "xla", ""]]
    assert len(stage_table(frame)) == 1


def test_precision_is_a_column_and_part_of_a_case_in_tables():
    frame = frame_of([record(0, precision=name) for name in ("tf32", "ieee", "")])
    assert sorted(frame["precision"]) == ["", "ieee", "tf32"]
    expected = ["size=8", "size=8, precision=ieee", "size=8, precision=tf32"]
    assert stage_table(frame)["axes"].tolist() == expected


# The long frame


def test_the_long_frame_has_totals_kinds_and_trips_and_says_what_it_could_not_read(tmp_path):
    path = write(
        tmp_path, record(0, facts=FACTS), record(1, facts=FACTS), record(0, axes={"size": 9})
    )
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.warns(HarnessWarning, match="1 corrupt"):
        frame = harness.program_facts(tmp_path)
    assert of(frame) == {
        **{("launches", ""): 3, ("flops", ""): 2, ("temporary_bytes", ""): 0},
        **{("fusion_kinds", "loop"): 2, ("fusion_kinds", "custom"): 1, ("loop_trips", "0"): 8},
    }
    assert set(frame["size"]) == {8}
    assert list(frame.columns) == [*COLUMNS[:6], "size", *COLUMNS[6:]]
    with pytest.raises(UsageError, match="does not exist"):
        harness.program_facts(tmp_path / "none")


def test_in_the_long_frame_a_disagreement_or_an_unknown_trip_is_nan(tmp_path):
    other = Facts(launches=4, fusion_kinds={"loop": 2}, loop_trips=[None])
    write(tmp_path, record(0, facts=FACTS), record(1, facts=other))
    found = of(harness.program_facts(tmp_path))
    assert found["flops", ""] == 2  # the other process does not know it
    assert found["fusion_kinds", "loop"] == 2
    for fact in (("launches", ""), ("fusion_kinds", "custom"), ("loop_trips", "0")):
        assert math.isnan(found[fact])


def test_the_long_frame_tells_comparisons_and_axes_named_like_a_column(tmp_path):
    odd = record(0, axes={"kind": "copy", "size": 4}, facts=FACTS)
    write(tmp_path, odd, *xla([1e3]))
    frame = harness.program_facts(tmp_path)
    assert of(frame, axis_kind="copy")["launches", ""] == 3
    assert of(frame, threads="one")["launches", ""] == 1
    assert frame[frame["threads"] == ""]["size"].iloc[0] == 4


# From asv's trees, and as text


def test_facts_in_asv_files_are_rows_named_after_them(tmp_path):
    packed = [[12.0, 3.0], [["'tf32'", "'ieee'"], ["'forward'"], ["'cpu'"]], "1.a", None, None]
    about = {"param_names": ["precision", "transform", "target"]}
    benchmarks = {"f.Work.track_launches": packed, "f.Work.track_code_bytes": [[4]]}
    write_asv(tmp_path, benchmarks, {"f.Work.track_launches": about})
    frame = everything(tmp_path)
    launches = frame[frame["stage"] == "launches"]
    assert launches[["value", "precision", "unit"]].to_numpy().tolist() == [
        *([12, "tf32", "count"], [3, "ieee", "count"])
    ]
    assert frame[frame["stage"] == "code_bytes"]["unit"].tolist() == ["bytes"]
    assert set(frame["backend"]) == {"xla"}
    assert "launches" not in stage_table(frame)
    assert "12" in fact_table(frame)["launches"].tolist()


def test_the_table_of_facts_has_a_row_per_case():
    facts = Facts(launches=3, fusions=2, flops=2.1e9, bytes_accessed=3e6, temporary_bytes=0)
    facts.trace_calls = 120
    frame = frame_of([record(0, facts=facts), record(0, axes={"size": 9}), *xla([1e3])])
    assert fact_table(frame).to_numpy().tolist() == [
        ["family.Work", "size=8", "3", "2", "2.1 Gflop", "3 MB", "0 B", "120", ""],
        ["family.Work", "size=9", *[""] * 7],
    ]
    assert fact_table(frame_of([])).empty


@pytest.mark.parametrize(
    ("value", "fact", "text"),
    [
        (1234.0, "launches", "1234"),
        (999.0, "flops", "999 flop"),
        (1000.0, "flops", "1 kflop"),
        (999_600.0, "temporary_bytes", "1 MB"),
        (4.5e12, "bytes_accessed", "4.5 TB"),
        (math.nan, "flops", ""),
    ],
)
def test_facts_are_shown_with_a_unit_that_suits_them(value, fact, text):
    assert count_text(value, fact) == text


def test_asv_is_shown_every_fact_that_is_better_when_lower_and_its_unit():
    assert set(TOTALS) - set(FACT_METRICS) == {"aliased_bytes"}
    units = {name: fact.unit for name, fact in facts.FACTS.items()}
    assert {fact for fact, unit in units.items() if unit == "flops"} == {"flops"}
    assert units["bytes_accessed"] == units["peak_bytes"] == METRICS["code_bytes"].unit == "bytes"
    assert units["launches"] == units["transcendentals"] == "count"
