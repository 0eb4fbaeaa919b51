"""Programs that a sweep keeps, and `harness ir --diff records:A..B`, which builds nothing."""

import gzip
import os
import re

import pytest

from harness.asv.measure import measure as asv_measure
from harness.engine.context import Context, Options
from harness.engine.sweep import sweep as measure
from harness.errors import StoreError
from harness.program.facts import Facts
from harness.records import kept
from harness.records.git import Commit
from harness.records.schema import Record, to_raw
from harness.stages import sampling
from tests.ir import waves
from tests.sweeps import workload

A, B, C = "a" * 40, "b" * 40, "c" * 40


class Texts:
    """What of `jax.stages` a program is kept from."""

    def __init__(self, text):
        self.as_text = lambda: text


def record(commit, case, fingerprint, facts, **fields):
    base = {name: "" for name in ("key", "version", "protocol", "effort", "sweep")}
    base |= {"python": "3", "jax": "0", "jaxlib": "0", "environment": to_raw({})}
    base |= {"schema": 1, "workload": "waves.Wave", "axes": {"size": case}, "target": "cpu"}
    base |= {"machine": "m", "env": "e", "scenario": "off", "status": "ok", "seed": 0}
    base |= {"transform": "forward", "commit_date_ms": 0, "started_at_ms": 0, "replicate": "0"}
    base |= {"commit": commit, "fingerprint": fingerprint, "facts": facts}
    return Record(**base | {"key": f"{case}"} | fields)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Records of three commits: of the last without facts, as earlier versions wrote them."""
    results = tmp_path_factory.mktemp("results")
    for commit, records in {
        A: [
            record(A, 8, "f1", Facts(fusions=1)),
            record(A, 16, "f2", Facts(fusions=1)),
            record(A, 32, "f4", Facts(fusions=1)),
            record(A, 8, "w", None, scenario="warm", key="warm"),
        ],
        B: [record(B, 8, "f1", Facts(fusions=1)), record(B, 16, "f3", Facts(fusions=3))],
        C: [record(C, 8, "f1", None)],
    }.items():
        Context(results, "m", "e", Commit(commit)).store.append(records)
    programs = kept.folder_of(results, "m")
    kept.open_folder(programs)
    for fingerprint, number in (("f2", 2), ("f3", 3)):
        lowered, compiled = (
            Texts(f"stablehlo.constant {number}"),
            Texts(f"ROOT %x = s32[] {number}"),
        )
        kept.keep(programs, fingerprint, lowered, compiled)
    return results


@pytest.fixture
def diff(monkeypatch, capsys, results, tmp_path):
    def run(revisions, *arguments, pattern="Wave"):
        arguments = ("ir", pattern, "--diff", f"records:{revisions}", *arguments)
        where = ("--results", results, "--benchmarks", tmp_path)
        return waves.command(monkeypatch, capsys, *arguments, *where)

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


def test_cases_that_differ_in_precision_alone_are_told_apart(monkeypatch, capsys, tmp_path):
    for commit, programs in {A: ("f1", "f2"), B: ("f1", "f3")}.items():
        records = [
            record(commit, 8, program, Facts(fusions=1), precision=precision, key=precision)
            for precision, program in zip(("ieee", "tf32"), programs, strict=True)
        ]
        Context(tmp_path, "m", "e", Commit(commit)).store.append(records)

    def run(*arguments):
        arguments = ("ir", "Wave", "--diff", "records:aaaa..bbbb", *arguments)
        return waves.command(monkeypatch, capsys, *arguments, "--results", tmp_path)[1]

    both = run()
    assert "the same program (f1)\na: waves.Wave size=8, precision=ieee at aaaaaaaa" in both
    assert re.search(r"another program: f2 → f3\b.*\na: waves.Wave size=8, precision=tf32 at", both)
    assert "tf32" not in run("--case", "precision=ieee")


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


def test_a_program_whose_text_was_not_kept_is_told_from_an_equal_one(diff, results, capsys):
    folder = kept.folder_of(results, "m")
    path = kept.path_of(folder, "f3")
    data = path.read_bytes()
    path.unlink()
    assert "another program: f2 → f3. Its text was not kept" in diff("aaaa..bbbb")[1]
    path.write_bytes(data[:20])
    code, _, said = diff("aaaa..bbbb")
    assert code == 4
    assert "f3.json.gz cannot be read: " in said
    path.write_bytes(data)


def test_a_program_is_kept_once_and_as_equal_bytes(tmp_path):
    lowered = Texts("module")
    hlo = Texts('ROOT %a = f32[] x, metadata={op_name="f"}')
    for place in ("one", "two"):
        kept.open_folder(tmp_path / place)
        kept.keep(tmp_path / place, "f", lowered, hlo)
    one, two = (kept.path_of(tmp_path / place, "f").read_bytes() for place in ("one", "two"))
    assert one == two
    assert b"f32" in gzip.decompress(one)
    assert b"metadata" not in gzip.decompress(one)
    kept.keep(tmp_path / "one", "f", lowered, Texts("another"))
    assert kept.path_of(tmp_path / "one", "f").read_bytes() == one
    kept.keep(tmp_path / "one", "", lowered, Texts("nothing identifies it"))
    assert os.listdir(tmp_path / "one") == ["f.json.gz"]


def test_a_link_that_lies_where_a_program_is_kept_is_not_followed(tmp_path):
    folder, outside = tmp_path / "programs", tmp_path / "outside"
    kept.open_folder(folder)
    kept.path_of(folder, "f").symlink_to(outside)
    kept.keep(folder, "f", Texts("a"), Texts("b"))
    assert not outside.exists()
    assert kept.read(folder, "f").stablehlo == "a"


def test_a_write_that_fails_leaves_no_half_file(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match=r"cannot be written: No space left on device\. Free"):
        kept.keep(tmp_path, "f", Texts("a"), Texts("b"))
    assert os.listdir(tmp_path) == []


def sweep(results, commit, **options):
    context = Context(results, "m", "e", Commit(commit))
    options = Options(sampling.effort("1x1"), first_calls=0, **options)
    return measure([workload("small", "Scale")], context, options)


def test_a_sweep_keeps_programs_only_if_asked_and_two_commits_share_them(
    tmp_path, monkeypatch, capsys
):
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
    arguments = ("ir", "Scale", "--diff", "records:aaaa..bbbb", "--results", tmp_path)
    code, out, _ = waves.command(monkeypatch, capsys, *arguments, "--exit-code")
    assert code == 0
    assert out.count("the same program (") == 2


def test_a_folder_that_cannot_take_programs_is_said_before_anything_is_measured(tmp_path):
    (tmp_path / "m").mkdir()
    kept.folder_of(tmp_path, "m").write_text("in the way")
    with pytest.raises(StoreError, match=r"Programs cannot be kept in .*--keep-programs"):
        sweep(tmp_path, A, keep_programs=True)
    assert not list(tmp_path.glob("m/records/*.jsonl")) or not any(
        file.stat().st_size for file in tmp_path.glob("m/records/*.jsonl")
    )


def test_asv_keeps_programs_by_a_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_RESULTS", str(tmp_path))
    monkeypatch.setenv("HARNESS_MACHINE", "m")
    monkeypatch.setenv("HARNESS_EFFORT", "1x1")
    monkeypatch.setenv("HARNESS_KEEP_PROGRAMS", "1")
    asv_measure(workload("small", "Scale"))
    assert len(os.listdir(kept.folder_of(tmp_path, "m"))) == 2
