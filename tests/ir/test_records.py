"""Programs that a sweep keeps, and `harness ir --diff records:A..B`, which builds nothing."""

import gzip
import os
import re
from types import SimpleNamespace

import pytest

from harness.asv.measure import measure as asv_measure
from harness.errors import StoreError
from harness.measure.context import Context, Options
from harness.measure.sweep import sweep as measure
from harness.program.facts import Facts
from harness.records import json_file, kept
from harness.records.git import Commit
from harness.stages import sampling
from tests.frame import trees
from tests.sweeps import workload

A, B, C = "a" * 40, "b" * 40, "c" * 40


def texts(text):
    """Return what of `jax.stages` a program is kept from."""
    return SimpleNamespace(as_text=lambda: text)


def record(commit, size, fingerprint, fusions=1, **fields):
    facts = Facts(fusions=fusions) if fusions else None
    known = {"commit": commit, "fingerprint": fingerprint, "facts": facts, "machine": "m"}
    return trees.record(workload="waves.Wave", axes={"size": size}, **known | fields)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Records of three commits: of the last without facts, as earlier versions wrote them."""
    results = tmp_path_factory.mktemp("results")
    trees.write(
        results,
        *(record(A, size, program) for size, program in ((8, "f1"), (16, "f2"), (32, "f4"))),
        record(A, 8, "w", None, scenario="warm"),
        *(record(B, 8, "f1"), record(B, 16, "f3", 3), record(C, 8, "f1", None)),
    )
    programs = kept.folder_of(results, "m")
    kept.open_folder(programs)
    for number in (2, 3):
        both = texts(f"stablehlo.constant {number}"), texts(f"ROOT %x = s32[] {number}")
        kept.keep(programs, f"f{number}", *both)
    return results


@pytest.fixture
def diff(command, results, tmp_path):
    def run(revisions, *arguments, results=results):
        arguments = ("ir", "Wave", "--diff", f"records:{revisions}", *arguments)
        return command(*arguments, "--results", results, "--benchmarks", tmp_path)

    return run


def test_each_case_of_both_commits_is_compared_by_its_facts_and_its_text(diff):
    code, out, said = diff(f"{A}..{B[:9]}")
    assert (code, said) == (0, "")
    first, second = out.split("\n\n", 1)
    assert first.splitlines() == [
        "the same program (f1)",
        "a: waves.Wave size=8 at aaaaaaaa",
        "b: waves.Wave size=8 at bbbbbbbb",
    ]
    assert second.startswith("another program: f2 → f3\na: waves.Wave size=16 at aaaaaaaa\n")
    assert "fusion" in second
    assert "s32[] 2" in second
    assert "s32[] 3" in second
    assert "size=32" not in out


def test_cases_that_differ_in_precision_alone_are_told_apart(diff, tmp_path):
    for commit, other in ((A, "f2"), (B, "f3")):
        for precision, program in (("ieee", "f1"), ("tf32", other)):
            trees.write(tmp_path, record(commit, 8, program, precision=precision))
    _, both, _ = diff("aaaa..bbbb", results=tmp_path)
    assert "the same program (f1)\na: waves.Wave size=8, precision=ieee at aaaaaaaa" in both
    assert re.search(r"another program: f2 → f3\b.*\na: waves.Wave size=8, precision=tf32 at", both)
    assert "tf32" not in diff("aaaa..bbbb", "--case", "precision=ieee", results=tmp_path)[1]


def test_stage_case_and_exit_code_apply(diff):
    assert diff("aaaa..bbbb", "--case", "size=8", "--exit-code")[0] == 0
    code, out, _ = diff("aaaa..bbbb", "--case", "size=16", "--stage", "stablehlo", "--exit-code")
    assert code == 1
    assert "stablehlo.constant 3" in out
    assert diff("aaaa..bbbb", "--exit-code", "--facts")[0] == 1


@pytest.mark.parametrize(
    ("revisions", "arguments", "code", "text"),
    [
        ("aaaa", (), 2, "expected records:REV..REV"),
        ("aaaa..", (), 2, "expected records:REV..REV"),
        ("aaaa..dddd", (), 2, "holds no records of commit 'dddd'"),
        ("aaaa..no/such", (), 2, "holds no records of commit 'no/such'"),
        ("aaaa..cccc", (), 4, "The records of 'cccc' hold no facts of the program"),
        ("aaaa..bbbb", ("--case", "size=64"), 4, "No such case was measured at 'aaaa'"),
        ("aaaa..bbbb", ("--case", "size=32"), 4, "No such case was measured at 'bbbb'"),
        ("aaaa..bbbb", ("--stage", "jaxpr"), 2, "Records keep no jaxpr"),
    ],
)
def test_what_the_records_do_not_hold_is_said(diff, revisions, arguments, code, text):
    found, out, said = diff(revisions, *arguments)
    assert (found, out) == (code, "")
    assert text in said


def test_a_program_whose_text_was_not_kept_is_told_from_an_equal_one(diff, results):
    path = kept.path_of(kept.folder_of(results, "m"), "f3")
    data = path.read_bytes()
    path.unlink()
    assert "another program: f2 → f3. Its text was not kept" in diff("aaaa..bbbb")[1]
    path.write_bytes(data[:20])
    code, _, said = diff("aaaa..bbbb")
    assert code == 4
    assert "f3.json.gz cannot be read: " in said
    path.write_bytes(data)


def test_a_program_is_kept_once_and_as_equal_bytes(tmp_path):
    lowered, hlo = texts("module"), texts('ROOT %a = f32[] x, metadata={op_name="f"}')
    for place in ("one", "two"):
        kept.open_folder(tmp_path / place)
        kept.keep(tmp_path / place, "f", lowered, hlo)
    one, two = (kept.path_of(tmp_path / place, "f").read_bytes() for place in ("one", "two"))
    assert one == two
    assert b"f32" in gzip.decompress(one)
    assert b"metadata" not in gzip.decompress(one)
    kept.keep(tmp_path / "one", "f", lowered, texts("another"))
    assert kept.path_of(tmp_path / "one", "f").read_bytes() == one
    kept.keep(tmp_path / "one", "", lowered, texts("nothing identifies it"))
    assert os.listdir(tmp_path / "one") == ["f.json.gz"]


def test_a_program_that_unpacks_to_more_than_is_read_is_refused(tmp_path, monkeypatch):
    kept.open_folder(tmp_path)
    kept.keep(tmp_path, "f", texts("a" * 2000), texts("b"))
    size = len(gzip.decompress(kept.path_of(tmp_path, "f").read_bytes()))
    monkeypatch.setattr(json_file, "MOST_BYTES", size)
    assert kept.read(tmp_path, "f").stablehlo == "a" * 2000
    monkeypatch.setattr(json_file, "MOST_BYTES", size - 1)
    with pytest.raises(StoreError, match="larger than"):
        kept.read(tmp_path, "f")


def test_a_link_that_lies_where_a_program_is_kept_is_not_followed(tmp_path):
    folder, outside = tmp_path / "programs", tmp_path / "outside"
    kept.open_folder(folder)
    kept.path_of(folder, "f").symlink_to(outside)
    kept.keep(folder, "f", texts("a"), texts("b"))
    assert not outside.exists()
    assert kept.read(folder, "f").stablehlo == "a"


def test_a_write_that_fails_leaves_no_half_file(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match=r"cannot be written: No space left on device\. Free"):
        kept.keep(tmp_path, "f", texts("a"), texts("b"))
    assert os.listdir(tmp_path) == []


def sweep(results, commit, **options):
    context = Context(results, "m", "e", Commit(commit))
    options = Options(sampling.effort("1x1"), first_calls=0, **options)
    return measure([workload("small", "Scale")], context, options)


@pytest.mark.nightly
def test_a_sweep_keeps_programs_only_if_asked_and_two_commits_share_them(tmp_path, command):
    assert len(sweep(tmp_path, A).records) == 4
    assert not kept.folder_of(tmp_path, "m").exists()
    records = sweep(tmp_path, B, keep_programs=True).records
    wanted = {r.fingerprint for r in records if r.workload == "small.Scale"}
    files = sorted(os.listdir(kept.folder_of(tmp_path, "m")))
    assert files == sorted(f"{fingerprint}.json.gz" for fingerprint in wanted)
    for fingerprint in wanted:
        program = kept.read(kept.folder_of(tmp_path, "m"), fingerprint)
        assert program.hlo.startswith("HloModule jit_function")
        assert "stablehlo.sine" in program.stablehlo
    arguments = ("--diff", "records:aaaa..bbbb", "--results", tmp_path, "--exit-code")
    code, out, _ = command("ir", "Scale", *arguments)
    assert code == 0
    assert out.count("the same program (") == 2


def test_a_folder_that_cannot_take_programs_is_said_before_anything_is_measured(tmp_path):
    (tmp_path / "m").mkdir()
    kept.folder_of(tmp_path, "m").write_text("in the way")
    with pytest.raises(StoreError, match=r"Programs cannot be kept in .*--keep-programs"):
        sweep(tmp_path, A, keep_programs=True)
    assert not any(file.stat().st_size for file in tmp_path.glob("m/records/*.jsonl"))


def test_asv_keeps_programs_by_a_variable(tmp_path, monkeypatch):
    given = {"RESULTS": str(tmp_path), "MACHINE": "m", "EFFORT": "1x1", "KEEP_PROGRAMS": "1"}
    for name, value in given.items():
        monkeypatch.setenv(f"HARNESS_{name}", value)
    asv_measure(workload("small", "Scale"))
    assert len(os.listdir(kept.folder_of(tmp_path, "m"))) == 2
