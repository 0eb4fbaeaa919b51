"""Where signed results are wanted, nothing else is read, and the error says what is wrong."""

import shutil
import subprocess

import pytest

import harness
from harness import fsck
from harness.errors import StoreError, UsageError
from harness.fleet import shared
from harness.records import signatures
from harness.records.store import store_path
from tests.frame.trees import record, write, write_asv

MACHINE = record().machine


def allow(place, **keys):
    lines = [
        f'{machine} namespaces="jax-harness" {key.with_suffix(".pub").read_text()}'
        for machine, key in keys.items()
    ]
    place.write_text("".join(lines))


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """Results of one machine, signed; who may sign; and the keys of that machine and of another."""
    folder = tmp_path_factory.mktemp("signed")
    for name in ("own", "other"):
        words = ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(["ssh-keygen", *words], check=True)
    write(folder / "results", record(0), record(1))
    aside = folder / "results" / MACHINE / "aa" / "run.json5"
    aside.parent.mkdir()
    aside.write_text("{}")
    allow(folder / "signers", **{MACHINE: folder / "own"})
    assert signatures.sign(aside.parents[1], folder / "own") == 2
    return folder


@pytest.fixture
def tree(signed, tmp_path, monkeypatch):
    shutil.copytree(signed, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv(signatures.SIGNERS, str(tmp_path / "signers"))
    return tmp_path / "results"


@pytest.fixture
def key(tree):
    return tree.with_name("own")


def records_file(tree):
    (file,) = (tree / MACHINE / "records").glob("*.jsonl")
    return file


def test_what_is_signed_is_read_from_the_tree_the_folder_and_the_file(tree):
    for place in (tree, tree / MACHINE, records_file(tree)):
        assert len(harness.load(place, all=True)) > 0
    assert fsck.check(tree).findings[0].path.endswith("run.json5"), "no other finding"


def test_without_the_variable_nobody_asks_for_signatures(tree, monkeypatch):
    monkeypatch.delenv(signatures.SIGNERS)
    shutil.rmtree(tree / MACHINE / signatures.FOLDER)
    assert len(harness.load(tree, all=True)) > 0


def changed(file, *change):
    file.write_bytes(file.read_bytes().replace(*change))


def of_another_machine(tree, key):
    (tree / MACHINE).rename(tree / "other")
    allow(tree.with_name("signers"), other=tree.with_name(key))


def of_a_machine_inside(tree):
    of_another_machine(tree, "own")
    shutil.rmtree(tree / "other" / signatures.FOLDER)
    signatures.sign(tree / "other", tree.with_name("own"))


def of_a_machine_inside_by_asv(tree):
    write_asv(tree, {"m.time_x": [[1.0]]}, params={"machine": "other"})
    signatures.sign(tree / MACHINE, tree.with_name("own"))


CHANGED = r"\.jsonl: it has changed since it was signed"
NOBODY = f"nobody who may sign for '{MACHINE}' has signed it"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda tree: shutil.rmtree(tree / MACHINE / signatures.FOLDER), "it is not signed"),
        (lambda tree: changed(records_file(tree), b'"ok"', b'"ko"', 1), CHANGED),
        (lambda tree: write(tree, record(2)), CHANGED),
        (lambda tree: changed(records_file(tree), records_file(tree).read_bytes(), b""), CHANGED),
        (lambda tree: records_file(tree).unlink(), r"\.jsonl: it was signed, and is gone"),
        (
            lambda tree: shutil.copy(records_file(tree), records_file(tree).with_name("a.jsonl")),
            r"a\.jsonl: it is not signed",
        ),
        (
            lambda tree: changed(tree / MACHINE / "aa" / "run.json5", b"{}", b'{"a": 1}'),
            r"run\.json5: it has changed since it was signed",
        ),
        (
            lambda tree: changed(
                tree / MACHINE / signatures.FOLDER / "all.sha256", b"records/", b"recordz/"
            ),
            f"{NOBODY}: .*ignature",
        ),
        (lambda tree: signatures.sign(tree / MACHINE, tree.with_name("other")), NOBODY),
        (lambda tree: of_another_machine(tree, "other"), NOBODY.replace(MACHINE, "other")),
        (lambda tree: of_another_machine(tree, "own"), f"it is of the machine '{MACHINE}'"),
        (of_a_machine_inside_by_asv, "it has results of the machine 'other'"),
        (of_a_machine_inside, f"it has a record of the machine '{MACHINE}'"),
    ],
)
def test_what_is_not_as_it_was_signed_is_refused_with_the_reason(tree, spoil, said):
    spoil(tree)
    with pytest.raises(StoreError, match=f"{said}.*HARNESS_SIGNERS is set") as refused:
        harness.load(tree, all=True)
    assert len(str(refused.value).splitlines()) == 1
    assert {"not signed", "damaged"} & {one.state for one in fsck.check(tree).findings}


def test_a_file_that_rows_were_exported_to_has_no_signature(tree, command):
    file = tree.with_name("rows.parquet")
    assert command("export", "-r", tree, "-o", file)[0] == 0
    with pytest.raises(StoreError, match="what was exported is not signed"):
        harness.load(file)


@pytest.mark.parametrize("name", ["nowhere", "signers"])
def test_a_key_that_cannot_be_used_is_one_error(tree, name):
    with pytest.raises(UsageError, match=f"cannot be signed with .*{name}: "):
        signatures.sign(tree / MACHINE, tree.with_name(name))


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        (signatures.SIGNERS, "HARNESS_SIGNERS names '/nowhere', which cannot be read"),
        ("PATH", "Signing takes OpenSSH"),
    ],
)
def test_what_it_takes_and_is_not_there_is_one_error(tree, monkeypatch, variable, said):
    monkeypatch.setenv(variable, "/nowhere")
    with pytest.raises(UsageError, match=said):
        harness.load(tree)


def test_a_name_that_would_be_a_line_of_the_list_is_not_signed(tree, key):
    (tree / MACHINE / "x\n0  box.json").write_text("{}")
    with pytest.raises(UsageError, match="is no name of a file that is signed"):
        signatures.sign(tree / MACHINE, key)


def test_the_command_signs_again_what_was_added(tree, key, command):
    write(tree, record(2))
    lists = tree / MACHINE / signatures.FOLDER
    (lists / f"order{signatures.SUFFIX}").write_text("of a fleet, before\n")
    words = ("sign", "-r", tree, "--key", key, "--machine")
    code, out, err = command(*words, MACHINE)
    assert (code, out.split()[:2]) == (0, ["2", "files"]), err
    assert [one.name for one in lists.iterdir()] == [f"all{signatures.SUFFIX}"]
    assert len(harness.load(tree, all=True)) > 0
    code, _, err = command(*words, "x")
    assert (code, "holds no results" in err) == (2, True)


def test_a_store_of_a_fleet_is_signed_order_by_order(tmp_path, key, tree, monkeypatch):
    store, one = tmp_path / "store", record(0)
    name = store_path(tmp_path, MACHINE, one.commit, one.env, one.night).relative_to(tmp_path)
    monkeypatch.setenv(signatures.KEY, str(key))
    for process in (0, 1):
        shared.put(str(store), [record(process)])
    assert len(list(shared.stored(str(store), name))) == 2
    assert len(harness.load(store, all=True)) > 0
    monkeypatch.delenv(signatures.KEY)
    shared.put(str(store), [record(2)])
    for read in (lambda: list(shared.stored(str(store), name)), lambda: harness.load(store)):
        with pytest.raises(StoreError, match="it is not signed"):
            read()
