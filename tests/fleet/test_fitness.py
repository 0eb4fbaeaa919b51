"""Which workers fit, by what they say of themselves."""

import shutil

import msgspec
import pytest
from distributed.config import defaults

from harness.declare.location import locate
from harness.fleet import fitness, machine, place
from harness.fleet.machine import Gpu
from harness.fleet.place import Question
from harness.records import environment
from harness.records.git import Commit
from tests.sweeps import workload

A, B = Gpu("GPU-aa11", "NVIDIA H200"), Gpu("GPU-bb22", "NVIDIA H200")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """What this process says of itself."""
    monkeypatch.setenv("HARNESS_SPOOL", str(tmp_path))
    return place.decode_place(place.describe(place.encode_question(Question("owner", [])), "here"))


def but(found, **changes):
    return msgspec.structs.replace(found, **changes)


@pytest.mark.parametrize("name", ["a/b", "..", ".", "a/"])
def test_a_machine_that_cannot_name_a_folder_is_refused(here, name):
    text = fitness.unfit(but(here, machine=name), Commit(), {}, False)
    assert f"calls its machine {name!r}, which cannot name a folder" in text


def test_a_workload_that_is_not_there_is_said_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_SPOOL", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "leaving.py").write_text("raise SystemExit('not today')")
    gone = msgspec.structs.replace(locate(workload("small", "Scale")), file="/nowhere/small.py")
    leaving = msgspec.structs.replace(gone, module="leaving", file="/nowhere/leaving.py")
    asked = place.encode_question(Question("owner", [gone, leaving]))
    found = place.decode_place(place.describe(asked, "here"))
    wanted = {"troubled.small.Scale": "2.0/2.0"}
    text = fitness.unfit(found, Commit(), wanted, False)
    assert text.startswith("cannot use troubled.small.Scale: there is no troubled.small in ")
    assert "Start it in the folder that holds the workloads' package" in text
    assert found.broken["leaving.Scale"] == "SystemExit: not today"


def test_equal_machines_may_differ_a_little_in_memory(here):
    def with_memory(gib):
        return but(here, hardware={**here.hardware, "ram_bytes": int(gib * 2**30)})

    assert fitness.unlike(with_memory(15.49), [with_memory(15.51)]) == ""
    assert "ram_bytes: " in fitness.unlike(with_memory(15), [with_memory(31)])


def test_gpus_are_told_apart_by_what_no_other_has(here):
    task, other = (but(here, accelerators=gpu.kind, gpus=[gpu.id]) for gpu in (A, B))
    both = but(here, accelerators=A.kind, gpus=[A.id, B.id])
    assert set(task.devices("gpu")).isdisjoint(other.devices("gpu"))
    assert set(both.devices("gpu")) == {*task.devices("gpu"), *other.devices("gpu")}
    assert but(here, gpus=[]).devices("gpu") == [f"{here.host}/gpu"]
    assert both.devices("gpu:h200") == both.devices("cpu") == [f"{here.host}/cpu"]
    assert fitness.unlike(task, [other, but(both, host="another")]) == ""


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, (A, B)),
        ("1", (B,)),
        ("1,0", (B, A)),
        ("GPU-aa", (A,)),
        ("0,7,1", (A,)),
        ("", ()),
        ("-1", ()),
        ("MIG-cc33", (Gpu("MIG-cc33", "part of a GPU"),)),
    ],
)
def test_gpus_are_chosen_as_cuda_does(wanted, found):
    assert machine.chosen_gpus((A, B), wanted) == found


@pytest.mark.parametrize(("code", "found"), [(0, (A, B)), (9, ())])
def test_gpus_are_what_the_driver_says(tmp_path, monkeypatch, code, found):
    command = tmp_path / "nvidia-smi"
    command.write_text(
        f"#!/bin/sh\necho 'GPU-aa11, NVIDIA H200'\necho 'GPU-bb22, NVIDIA H200'\nexit {code}\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    machine.visible_gpus.cache_clear()
    try:
        assert machine.visible_gpus() == found
    finally:
        machine.visible_gpus.cache_clear()


def test_a_plugin_that_is_upgraded_under_a_worker_makes_it_another_one(tmp_path, monkeypatch):
    def install(version):
        folder = tmp_path / f"jax_cuda99_plugin-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: jax-cuda99-plugin\nVersion: {version}\n")
        return folder

    monkeypatch.syspath_prepend(tmp_path)
    old = install("1.0")
    try:
        machine.versions()
        before = environment.identity()
        assert environment.plugins()["jax-cuda99-plugin"] == "1.0"
        shutil.rmtree(old)
        install("2.0")
        machine.versions()
        assert environment.identity() != before
    finally:
        monkeypatch.undo()
        machine.versions()


def test_what_a_nanny_adds_is_known_and_what_a_user_sets_stays():
    set_by_dask = defaults["distributed"]["nanny"]["pre-spawn-environ"]
    names = {name: str(value) for name, value in set_by_dask.items()}
    assert names.items() <= machine.NANNY_DEFAULTS.items()
    found = {**machine.NANNY_DEFAULTS, "OMP_NUM_THREADS": "4", "HOME": "/"}
    assert machine.added_by_nanny(found, {"MKL_NUM_THREADS": "1"}) == [
        "MALLOC_TRIM_THRESHOLD_",
        "OPENBLAS_NUM_THREADS",
        "PYTHONHASHSEED",
    ]
