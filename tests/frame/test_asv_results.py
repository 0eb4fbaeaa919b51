import math

import pytest

from harness.errors import HarnessWarning
from harness.frame.load import everything
from tests.frame.trees import COMMIT, ENV, record, write, write_asv

NAN, INF = math.nan, math.inf


def test_our_benchmarks_become_workloads_and_stages(tmp_path):
    samples = [0.4, 0.5, 0.6]
    packed = [
        [0.5, None, NAN, 0.25],
        [["8", "16"], ["(1, 2)"], ["'forward'", "'vmap'"], ["'cpu'"]],
        *("1.aaaa", 1_700_000_002_000, 0.1),
        [0.3, None, None, -INF],
        [0.7, None, None, INF],
        *[[None] * 4] * 3,
        [3, None, None, 1],
        [samples, None, None, [0.25]],
    ]
    names = ["size", "shape", "transform", "target"]
    about = {"family.Work.track_compile": {"param_names": names, "type": "time", "unit": "seconds"}}
    write_asv(tmp_path, {"family.Work.track_compile": packed}, about)
    frame = everything(tmp_path)
    same = frame[["workload", "stage", "scenario", "env", "commit"]].drop_duplicates()
    assert same.to_numpy().tolist() == [["family.Work", "compile", "off", ENV, COMMIT]]
    by = frame.set_index(["size", "transform"]).sort_index()
    good = by.loc[(8, "forward")]
    assert (good["value"], good["low"], good["high"]) == (0.5, 0.3, 0.7)
    assert (good["samples"], good["n_processes"], good["status"]) == (samples, 3, "ok")
    assert (good["shape"], good["target"], good["version"]) == ((1, 2), "cpu", "1.aaaa")
    assert (good["jax"], good["python"]) == ("0.10.2", "3.11")
    assert by.loc[(8, "vmap"), "status"] == "failed"
    assert by.loc[(16, "forward"), "status"] == "skipped"
    one = by.loc[(16, "vmap")]
    assert (one["value"], one["n_processes"]) == (0.25, 1)
    assert one[["low", "high"]].isna().all()


def test_records_stand_for_what_asv_filed_under_the_path_of_its_python(tmp_path):
    packed = [[0.5], [["'forward'"], ["'cpu'"]], "1.aaaa", 1_700_000_002_000, 0.1]
    env = "existing-py" + "/opt/venv/bin/python".replace("/", "_")
    write_asv(tmp_path, {"family.Work.track_compile": packed}, env=env)
    assert everything(tmp_path)["env"].tolist() == [env]
    write(tmp_path, record(commit=COMMIT))
    assert set(everything(tmp_path)["env"]) == {ENV}


def test_a_foreign_benchmark_is_a_workload_whose_stage_is_its_type(tmp_path):
    name, packed = "bench.Suite.peakmem_fit", [[1.5, 2.5], [["'a'", "<object at 0x>"]], "v"]
    about = {"type": "peakmemory", "unit": "bytes", "param_names": ["kind"], "rounds": 2}
    path = write_asv(tmp_path, {name: packed, "bench.time_add": [[3.0]]}, {name: about})
    columns = ["workload", "stage", "unit", "scenario", "n_samples", "n_processes", "value"]
    for where in (tmp_path, tmp_path / "box", path):
        frame = everything(where)
        assert frame[columns].to_numpy().tolist() == [
            *([name, "peakmemory", "bytes", "", 1, 1, value] for value in (1.5, 2.5)),
            ["bench.time_add", "time", "seconds", "", 0, 0, 3.0],
        ]
        assert frame["kind"].tolist()[:2] == ["a", "<object at 0x>"]
        assert frame["samples"].tolist()[2] == []
        assert not frame.attrs["problems"]["files"]


def test_statistics_are_those_that_asv_stored_and_processes_those_that_are_sure(tmp_path):
    """`rounds` is what benchmarks.json asks for today, and no measure of what was run."""
    cell = [[0.5], [], "v", 1_700_000_002_000, 0.1, [0.4], [0.7], [0.45], [0.55], [3]]
    quick = [*cell[:5], [-INF], [INF], [0.5], [0.5], [1], [1]]
    about = {name: {"type": "time", "rounds": 3} for name in ("m.time_x", "m.time_quick")}
    write_asv(tmp_path, {"m.time_x": [*cell, [10]], "m.time_quick": quick}, about)
    columns = ["low", "high", "interval_level", "n_samples", "n_processes"]
    once, usual = everything(tmp_path)[columns].to_numpy().tolist()
    assert usual == [0.4, 0.7, 0.99, 10, 0]
    assert once[3:] == [1, 1]
    assert all(map(math.isnan, once[:3]))


def test_a_name_tells_the_unit_of_what_benchmarks_json_lists_no_more(tmp_path):
    names = ("time_x", "TimeXy", "timeraw_x", "mem_x", "peakmem_x", "PeakMemXy", "track_x")
    write_asv(tmp_path, {f"m.{name}": [[1.0], []] for name in names}, {})
    frame = everything(tmp_path)
    time, memory, peak = ("time", "seconds"), ("memory", "bytes"), ("peakmemory", "bytes")
    kinds = dict(
        zip(frame["workload"], zip(frame["stage"], frame["unit"], strict=True), strict=True)
    )
    of = [kinds[f"m.{name}"] for name in names]
    assert of == [time, time, time, memory, peak, peak, ("track", "")]


def test_columns_that_are_null_or_left_off_mean_failed_in_every_case(tmp_path):
    write_asv(tmp_path, {"m.time_x": [None, [["1", "2"]]]})
    columns = ["status", "param1"]
    assert everything(tmp_path)[columns].to_numpy().tolist() == [["failed", 1], ["failed", 2]]


def test_a_result_that_is_no_number_is_skipped_with_that_reason(tmp_path):
    write_asv(tmp_path, {"m.track_x": [[{"a": 1}]], "m.track_y": [[10**400]]})
    frame = everything(tmp_path)
    assert set(frame["status"]) == {"skipped"}
    assert set(frame["reason"]) == {"the result is no number"}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        *((one, "unreadable") for one in (b"", b'{"commit_hash": "01', b"\xff\xfe\x00")),
        *((one, "unreadable") for one in (b"[1, 2]", b'{"name": "package"}', b'{"version": 2}')),
        (b"[" * 100_000, "unreadable"),
        (b"{}" + b" " * 150_000, "unreadable"),  # too large
        (b'{"version": 1, "results": {}}', "old_asv"),
        (b'{"version": 3, "results": {}}', "other_schema"),
        (b'{"version": null}', "other_schema"),
    ],
)
def test_what_is_no_asv_result_file_is_counted_and_never_fatal(
    tmp_path, monkeypatch, content, kind
):
    monkeypatch.setattr("harness.frame.asv_results.MAX_BYTES", 120_000)
    write_asv(tmp_path, {"m.time_x": [[1.0]]}).with_name("bad.json").write_bytes(content)
    with pytest.warns(HarnessWarning, match="left out: 1"):
        frame = everything(tmp_path)
    assert len(frame) == 1
    assert frame.attrs["problems"][kind] == 1
    (damage,) = frame.attrs["problems"]["files"]
    assert (damage["kind"], damage["count"]) == (kind, 1)
    assert ("larger than" in damage["what"]) == (len(content) > 120_000)


@pytest.mark.parametrize(
    "packed",
    [
        *(7, None, {"params": [], "result": [1]}, [[1.0, 2.0], []], [[1.0], [["1"], "ab"]]),
        *([[1.0], {"a": 1}], [[1.0], [[1, 2]]], [None, [["1"] * 100] * 100], [[1.0]] * 50),
    ],
)
def test_a_malformed_benchmark_costs_itself_and_no_other(tmp_path, packed):
    write_asv(tmp_path, {"m.time_bad": packed, "m.time_good": [[1.0]]})
    with pytest.warns(HarnessWarning, match="1 corrupt"):
        frame = everything(tmp_path)
    assert frame["workload"].tolist() == ["m.time_good"]


def test_a_broken_benchmarks_json_costs_units_and_names_only(tmp_path):
    write_asv(tmp_path, {"m.time_x": [[1.0], [["5"]]]})
    (tmp_path / "benchmarks.json").write_text('{"m.time_x": ')
    with pytest.warns(HarnessWarning, match="1 unreadable"):
        frame = everything(tmp_path)
    assert frame["param1"].tolist() == [5]


@pytest.mark.parametrize("date", [1e300, 10**400])
def test_strange_values_in_the_head_of_a_file_are_left_out(tmp_path, date):
    write_asv(
        tmp_path,
        {"m.time_x": [[1.0], [], None, "yesterday"]},
        {"m.time_x": {"unit": 3, "param_names": "ab", "rounds": -1}},
        **{"date": date, "params": [], "requirements": {"jax": ""}, "commit_hash": None},
    )
    (one,) = everything(tmp_path).to_dict("records")
    assert (one["machine"], one["commit"], one["n_processes"]) == ("box", "", 0)
    assert str(one["commit_date"]) == "NaT"
