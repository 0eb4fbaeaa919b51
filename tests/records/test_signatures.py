"""Where signed results are wanted, nothing else is read, and the error says what is wrong."""

import shutil
import subprocess

import pytest
from click.testing import CliRunner

import harness
from harness import fsck
from harness.cli import app
from harness.errors import StoreError, UsageError
from harness.fleet import shared
from harness.records import signatures
from harness.records.store import store_path
from tests.frame.trees import record, write

MACHINE = record().machine


def new_key(folder, name):
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
    subprocess.run(words, check=True)
    return folder / name


def allow(place, **keys):
    lines = [
        f'{machine} namespaces="jax-harness" {key.with_suffix(".pub").read_text()}'
        for machine, key in keys.items()
    ]
    place.write_text("".join(lines))


@pytest.fixture
def key(tmp_path):
    return new_key(tmp_path, "own")


@pytest.fixture
def tree(tmp_path, key, monkeypatch):
    """Results of one machine, signed; and those who may sign."""
    results = tmp_path / "results"
    write(results, record(0), record(1))
    aside = results / MACHINE / "aa" / "run.json5"
    aside.parent.mkdir()
    aside.write_text("{}")
    allow(tmp_path / "signers", **{MACHINE: key})
    monkeypatch.setenv(signatures.SIGNERS, str(tmp_path / "signers"))
    assert signatures.sign(results / MACHINE, key) == 2
    return results


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


def unsigned(tree, tmp_path):
    shutil.rmtree(tree / MACHINE / signatures.FOLDER)


def changed(tree, tmp_path):
    file = records_file(tree)
    file.write_bytes(file.read_bytes().replace(b'"ok"', b'"ko"', 1))


def added_to(tree, tmp_path):
    write(tree, record(2))


def a_record_removed(tree, tmp_path):
    file = records_file(tree)
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])


def a_file_removed(tree, tmp_path):
    records_file(tree).unlink()


def a_file_added(tree, tmp_path):
    shutil.copy(records_file(tree), records_file(tree).with_name("another.jsonl"))


def another_file_changed(tree, tmp_path):
    (tree / MACHINE / "aa" / "run.json5").write_text('{"a": 1}')


def list_changed(tree, tmp_path):
    (place,) = (tree / MACHINE / signatures.FOLDER).iterdir()
    place.write_bytes(place.read_bytes().replace(b"records/", b"recordz/"))


def signed_with_another_key(tree, tmp_path):
    signatures.sign(tree / MACHINE, new_key(tmp_path, "other"))


def of_a_machine_whose_key_it_is_not(tree, tmp_path):
    (tree / MACHINE).rename(tree / "other")
    allow(tmp_path / "signers", other=new_key(tmp_path, "others"))


def of_another_machine_of_the_same_key(tree, tmp_path):
    (tree / MACHINE).rename(tree / "other")
    allow(tmp_path / "signers", other=tmp_path / "own")


def of_a_machine_inside(tree, tmp_path):
    (tree / MACHINE / "records").rename(tree / "records")
    (tree / "other").mkdir()
    shutil.rmtree(tree / MACHINE)
    (tree / "records").rename(tree / "other" / "records")
    allow(tmp_path / "signers", other=tmp_path / "own")
    signatures.sign(tree / "other", tmp_path / "own")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (unsigned, "it is not signed"),
        (changed, r"\.jsonl: it has changed since it was signed"),
        (added_to, r"\.jsonl: it has changed since it was signed"),
        (a_record_removed, r"\.jsonl: it has changed since it was signed"),
        (a_file_removed, r"\.jsonl: it was signed, and is gone"),
        (a_file_added, r"another\.jsonl: it is not signed"),
        (another_file_changed, r"run\.json5: it has changed since it was signed"),
        (list_changed, f"nobody who may sign for '{MACHINE}' has signed it: .*ignature"),
        (signed_with_another_key, f"nobody who may sign for '{MACHINE}' has signed it"),
        (of_a_machine_whose_key_it_is_not, "nobody who may sign for 'other' has signed it"),
        (of_a_machine_inside, f"it has a record of the machine '{MACHINE}'"),
        (of_another_machine_of_the_same_key, f"it is of the machine '{MACHINE}'"),
    ],
)
def test_what_is_not_as_it_was_signed_is_refused_with_the_reason(tree, tmp_path, spoil, said):
    spoil(tree, tmp_path)
    with pytest.raises(StoreError, match=f"{said}.*HARNESS_SIGNERS is set") as refused:
        harness.load(tree, all=True)
    assert len(str(refused.value).splitlines()) == 1
    assert {"not signed", "damaged"} & {one.state for one in fsck.check(tree).findings}


def test_a_file_that_rows_were_exported_to_has_no_signature(tree, tmp_path):
    file = tmp_path / "rows" / "rows.parquet"
    assert CliRunner().invoke(app, ["export", "-r", str(tree), "-o", str(file)]).exit_code == 0
    with pytest.raises(StoreError, match="what was exported is not signed"):
        harness.load(file)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nowhere", None, "cannot be signed with .*nowhere: "),
        ("no-key", "this is no key", "cannot be signed with .*no-key: "),
    ],
)
def test_a_key_that_cannot_be_used_is_one_error(tree, tmp_path, name, content, said):
    if content:
        (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=said):
        signatures.sign(tree / MACHINE, tmp_path / name)


def test_allowed_signers_that_are_not_there_are_one_error(tree, monkeypatch):
    monkeypatch.setenv(signatures.SIGNERS, "nowhere")
    with pytest.raises(UsageError, match="HARNESS_SIGNERS names 'nowhere', which cannot be read"):
        harness.load(tree)


def test_a_system_without_ssh_says_what_it_takes(tree, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="Signing takes OpenSSH"):
        harness.load(tree)


def test_a_name_that_would_be_a_line_of_the_list_is_not_signed(tree, key):
    (tree / MACHINE / "x\n0  box.json").write_text("{}")
    with pytest.raises(UsageError, match="is no name of a file that is signed"):
        signatures.sign(tree / MACHINE, key)


def test_the_command_signs_again_what_was_added(tree, key):
    added_to(tree, None)
    words = ["sign", "-r", str(tree), "--machine", MACHINE, "--key", str(key)]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.output.split()[:2]) == (0, ["2", "files"]), done.output
    assert len(harness.load(tree, all=True)) > 0


def test_a_machine_without_results_cannot_be_signed(tree, key):
    done = CliRunner().invoke(app, ["sign", "-r", str(tree), "--machine", "x", "--key", str(key)])
    assert isinstance(done.exception, UsageError)
    assert "holds no results" in str(done.exception)


def test_a_store_of_a_fleet_is_signed_order_by_order(tmp_path, key, tree, monkeypatch):
    store, one = tmp_path / "store", record(0)
    name = store_path(tmp_path, MACHINE, one.commit, one.env, one.night).relative_to(tmp_path)
    monkeypatch.setenv(signatures.KEY, str(key))
    shared.put(str(store), [one])
    shared.put(str(store), [record(1)])
    assert len(list(shared.stored(str(store), name))) == 2
    assert len(harness.load(store, all=True)) > 0
    monkeypatch.delenv(signatures.KEY)
    shared.put(str(store), [record(2)])
    with pytest.raises(StoreError, match="it is not signed"):
        list(shared.stored(str(store), name))
    with pytest.raises(StoreError, match="it is not signed"):
        harness.load(store)
