from __future__ import annotations

import builtins
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tracemalloc
import types
import zlib
from pathlib import Path

import pytest

from harness.cache import entry as contents
from harness.cache import survey as sums
from harness.cache.directory import LocalDirectory, UnusableCacheError, open_directory
from harness.errors import UsageError
from tests.cache.filled import ROOT, entry_of, run_harness, run_jax

KEY = "0123456789abcdef" * 4
HEADER = b"\x0d\x08\x03\x12\x09pjrt_ifrt"
CAP = 10_000_000


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cache") / "plain"
    assert run_jax(directory)["written"] == 3
    return directory


@pytest.fixture(scope="module")
def capped_original(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cache") / "capped"
    assert run_jax(directory, cap=CAP)["written"] == 3
    return directory


@pytest.fixture
def cache(original, tmp_path):
    return shutil.copytree(original, tmp_path / "cache")


@pytest.fixture
def capped(capped_original, tmp_path):
    return shutil.copytree(capped_original, tmp_path / "capped")


def survey(directory, **more):
    return sums.survey(open_directory(str(directory)), **more)


def one(directory, module="jit_first"):
    (found,) = (entry for entry in survey(directory).entries if entry.module == module)
    return found


def packed(executable=HEADER + b"machine code", seconds=7):
    return zlib.compress(seconds.to_bytes(4, "big") + executable)


def write(directory, data, module="jit_mine"):
    (directory / f"{module}-{KEY}-cache").write_bytes(data)
    return one(directory, module)


def test_every_entry_of_real_jax_is_read(cache):
    seen = survey(cache)
    assert [entry.module for entry in seen.entries] == ["jit_first", "jit_second", "jit_third"]
    for entry in seen.entries:
        path = cache / f"{entry.name}-cache"
        assert re.fullmatch("[0-9a-f]{64}", entry.key)
        assert entry.size_bytes == path.stat().st_size
        assert entry.written_at == pytest.approx(path.stat().st_mtime)
        assert entry.contents.state == "readable"
        assert entry.contents.compile_whole_s == 0  # whole seconds: these took less than one
        assert entry.contents.format in contents.KNOWN_FORMATS
    assert not seen.capped


def test_the_compile_time_is_the_one_that_was_stored(cache):
    assert write(cache, packed(seconds=7)).contents.compile_whole_s == 7
    assert sums.totals(survey(cache).entries).compile_whole_s == 7


def test_under_a_cap_the_last_use_is_the_record_of_jax(capped):
    entry = one(capped)
    recorded = (capped / f"{entry.name}-atime").read_bytes()
    assert entry.used_source == "atime-file"
    assert entry.used_ns == int.from_bytes(recorded, "little")
    assert survey(capped).capped


def test_without_a_cap_the_last_use_says_that_the_file_system_told_it(cache):
    assert one(cache).used_source == "file-system"


@pytest.mark.parametrize("cap", [-1, CAP])
def test_an_entry_that_jax_has_read_is_no_longer_unread(tmp_path, cap):
    directory = tmp_path / "cache"
    run_jax(directory, cap=cap)
    assert all(entry.never_read for entry in survey(directory).entries)
    time.sleep(1.1)
    assert run_jax(directory, cap=cap, functions=1)["hits"] == 1
    if cap == -1 and os.statvfs(directory).f_flag & os.ST_NOATIME:
        pytest.skip("this file system keeps no times of last access")
    assert {entry.module for entry in survey(directory).entries if not entry.never_read} == {
        "jit_first"
    }


def test_reading_leaves_every_file_as_it_was(cache):
    before = {path.name: path.stat() for path in cache.iterdir()}
    survey(cache)
    after = {path.name: path.stat() for path in cache.iterdir()}
    assert {name: (s.st_atime_ns, s.st_mtime_ns) for name, s in before.items()} == {
        name: (s.st_atime_ns, s.st_mtime_ns) for name, s in after.items()
    }


@pytest.mark.parametrize(
    ("damage", "state", "reason"),
    [
        (lambda data: b"", "empty", "no bytes"),
        (lambda data: data[:1], "torn", "stops in the middle"),
        (lambda data: data[: len(data) // 2], "torn", "stops in the middle"),
        (lambda data: data[:-1], "torn", "stops in the middle"),
        (lambda data: b"garbage" * 9, "garbage", "begins with 67 61 72 62: neither"),
        (lambda data: packed()[:-1] + bytes([packed()[-1] ^ 1]), "garbage", "incorrect data check"),
        (lambda data: zlib.compress(b"\0\0\0\1"), "garbage", "unpacks to 4 bytes"),
        (lambda data: contents.ZSTD_MAGIC[:2], "torn", "zstd stream stops"),
    ],
)
def test_what_is_wrong_with_an_entry_is_told(cache, damage, state, reason):
    path = entry_of(cache, "jit_first")
    path.write_bytes(damage(path.read_bytes()))
    found = one(cache).contents
    assert (found.state, bool(re.search(reason, found.reason))) == (state, True), found


def zstd_frame(data):
    """A frame with its contents as they are; the format allows that, and no library is needed."""
    block = (len(data) << 3 | 1).to_bytes(3, "little")
    return contents.ZSTD_MAGIC + b"\x60" + (len(data) - 256).to_bytes(2, "little") + block + data


def test_zstd_without_its_library_is_a_state_of_its_own(cache, monkeypatch):
    monkeypatch.setattr(contents, "zstd_library", lambda: None)
    found = write(cache, zstd_frame(bytes(4) + HEADER + bytes(400))).contents
    assert (found.state, found.compression) == ("needs-zstd", "zstd")


def test_zstd_is_read_where_there_is_a_library(cache):
    if contents.zstd_library() is None:
        pytest.skip("this Python has no zstd")
    frame = zstd_frame(b"\0\0\0\5" + HEADER + bytes(400))
    found = write(cache, frame).contents
    assert (found.state, found.compile_whole_s, found.format) == ("readable", 5, "pjrt_ifrt 3")
    assert write(cache, frame[:-5]).contents.state == "torn"
    assert write(cache, frame[:4] + b"\xff" * 20).contents.state == "garbage"


def test_an_entry_of_100_MB_is_read_in_little_memory(cache):
    noise = os.urandom(1 << 20)
    (cache / f"jit_big-{KEY}-cache").write_bytes(zlib.compress(bytes(4) + HEADER + noise * 100, 0))
    tracemalloc.start()
    entry = one(cache, "jit_big")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert entry.contents.state == "readable"
    assert entry.contents.unpacked_bytes == 4 + len(HEADER) + (100 << 20)
    assert peak_bytes < 8e6


def test_an_entry_that_unpacks_to_too_much_is_left_alone(cache, monkeypatch):
    monkeypatch.setattr(contents, "MOST_BYTES", 1 << 20)
    found = write(cache, packed(bytes(50 << 20))).contents
    assert found.state == "unchecked"
    assert found.unpacked_bytes < 4 << 20


def test_a_name_that_jax_did_not_choose_is_shown_without_a_key(cache):
    (cache / "planted-cache").write_bytes(packed())
    assert one(cache, "planted").key == ""


def test_a_pipe_in_the_place_of_an_entry_does_not_block(cache):
    os.mkfifo(cache / f"jit_pipe-{KEY}-cache")
    assert one(cache, "jit_pipe").contents.state == "unreadable"


def test_entries_that_vanish_while_they_are_read_are_counted(cache, monkeypatch):
    look = LocalDirectory.look

    def vanishing(self, name):
        if name.startswith("jit_first"):
            (cache / name).unlink()
        return look(self, name)

    monkeypatch.setattr(LocalDirectory, "look", vanishing)
    seen = survey(cache)
    assert (len(seen.entries), seen.vanished) == (2, 1)


def test_caches_of_xla_are_counted_and_quarantines_are_not(cache):
    (cache / "xla_gpu_per_fusion_autotune_cache_dir").mkdir()
    (cache / "xla_gpu_per_fusion_autotune_cache_dir" / "one").write_bytes(bytes(10))
    shutil.copytree(cache, cache / "quarantine-20260101T000000Z", ignore=lambda *_: ["quarantine"])
    seen = survey(cache)
    assert len(seen.entries) == 3
    assert [(sub.files, sub.size_bytes) for sub in seen.sub_caches] == [(1, 10)]
    assert seen.quarantines == ("quarantine-20260101T000000Z",)


def test_evictions_are_those_that_jax_then_makes(tmp_path):
    directory = tmp_path / "cache"
    run_jax(directory, cap=CAP)
    run_jax(directory, cap=CAP, functions=1)  # the first is now the newest used
    seen = survey(directory)
    size_bytes = sum(entry.size_bytes for entry in seen.entries)
    told = sums.evictions(seen.entries, size_bytes - 1)
    assert [name.partition("-")[0] for name in told.due + told.then] == [
        "jit_second",
        "jit_third",
        "jit_first",
    ]
    script = (
        "import sys; from jax._src.lru_cache import LRUCache\n"
        "LRUCache(sys.argv[1], max_size=int(sys.argv[2])).put('new', b'1')"
    )
    subprocess.run(
        [sys.executable, "-c", script, str(directory), str(size_bytes)], check=True, timeout=60
    )
    left = {entry.name for entry in survey(directory).entries}
    assert {entry.name for entry in seen.entries} - left == set(told.due)


def test_a_cap_that_holds_all_evicts_nothing(capped):
    told = sums.evictions(survey(capped).entries, CAP)
    assert told.due == ()
    assert len(told.then) == 3


def test_inspect_prints_rows_and_totals_over_all(cache):
    done = run_harness("inspect", str(cache), "--limit", "1", "--sort", "name")
    assert done.returncode == 0, done.stderr
    assert "jit_first" in done.stdout
    assert "jit_second" not in done.stdout
    assert re.search(r"3 entries \(1 shown; --limit 0 shows all\).*3 readable", done.stdout)
    assert "whole seconds" in done.stdout


def test_inspect_prints_json_of_everything(capped):
    (capped / os.fsdecode(b"jit_\xff-cache")).write_bytes(b"")  # a name that is not text
    done = run_harness("inspect", str(capped), "--json", "--limit", "1", "--max-size", "0")
    seen = json.loads(done.stdout)
    assert len(seen["survey"]["entries"]) == seen["totals"]["entries"] == 4
    assert len(seen["evictions"]["due"]) == 4
    assert seen["evictions"]["due"][0] == "jit_\udcff"  # no time of use: the first to go
    assert run_harness("inspect", str(capped)).returncode == 0


def test_inspect_imports_neither_jax_nor_pandas(cache):
    script = (
        "import sys; from harness.cache import directory, doctor, survey\n"
        f"survey.survey(directory.open_directory({str(cache)!r}))\n"
        "assert not {'jax', 'jaxlib', 'pandas', 'numpy'} & set(sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )


def test_an_empty_directory_has_no_entries(tmp_path):
    done = run_harness("inspect", str(tmp_path))
    assert (done.returncode, "0 entries" in done.stdout) == (0, True)


def test_no_directory_is_one_clear_error(tmp_path):
    with pytest.raises(UnusableCacheError, match=r"There is no directory .*nowhere.*Expected"):
        open_directory(str(tmp_path / "nowhere"))


def test_a_file_in_its_place_is_one_clear_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UnusableCacheError, match=r"file is a file. Expected the directory"):
        open_directory(str(tmp_path / "file"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_the_directory_of_another_user_is_one_clear_error(tmp_path):
    tmp_path.chmod(0o700)
    os.seteuid(65534)
    try:
        with pytest.raises(UnusableCacheError, match="cannot be listed by nobody"):
            open_directory(str(tmp_path))
    finally:
        os.seteuid(0)


def test_a_directory_that_refuses_is_one_clear_error(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(UnusableCacheError, match=r"cannot be listed by .* \(it belongs to .*\)"):
        open_directory(str(tmp_path))


def test_a_bucket_without_its_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "etils.epath", None)
    with pytest.raises(UsageError, match=r"gs://team/cache .*pip install 'etils\[epath\]'"):
        open_directory("gs://team/cache")


def test_a_bucket_is_read_through_its_library(cache, monkeypatch):
    """With the interface of etils.epath over a local folder: there is no bucket to test with."""

    class Remote:
        def __init__(self, where):
            self.path = Path(str(where).replace("gs://team/cache", str(cache)))
            self.name = self.path.name

        def __truediv__(self, name):
            return Remote(self.path / name)

        def is_dir(self):
            return self.path.is_dir()

        def iterdir(self):
            return map(Remote, self.path.iterdir())

        def stat(self):
            seen = self.path.stat()
            return types.SimpleNamespace(length=seen.st_size, mtime=int(seen.st_mtime))

        def open(self, mode):
            return builtins.open(self.path, mode)

    module = types.ModuleType("etils.epath")
    module.Path = Remote
    monkeypatch.setitem(sys.modules, "etils", types.ModuleType("etils"))
    monkeypatch.setitem(sys.modules, "etils.epath", module)
    seen = survey("gs://team/cache")
    assert [entry.contents.state for entry in seen.entries] == ["readable"] * 3
    assert {(entry.used_source, entry.never_read) for entry in seen.entries} == {("unknown", None)}
    with pytest.raises(UnusableCacheError, match="no directory gs://elsewhere"):
        open_directory("gs://elsewhere")


def test_a_clock_that_went_backwards_shows_as_a_time_ahead(cache):
    later = time.time() + 3600
    os.utime(entry_of(cache, "jit_first"), (later, later))
    assert re.search(r"3\d{3} s ahead", run_harness("inspect", str(cache)).stdout)


def test_an_unknown_order_is_refused(cache):
    done = run_harness("inspect", str(cache), "--sort", "colour")
    assert done.returncode == 2
    assert "Expected one of size, age" in done.stderr


def test_a_directory_that_may_be_listed_but_not_entered_is_one_clear_error(cache, monkeypatch):
    def without_entering(look):
        def refuse(path, **more):
            if str(path).startswith(f"{cache}/"):
                raise PermissionError(13, "Permission denied", str(path))
            return look(path, **more)

        return refuse

    monkeypatch.setattr(os, "stat", without_entering(os.stat))
    monkeypatch.setattr(os, "lstat", without_entering(os.lstat))
    with pytest.raises(UnusableCacheError, match=r"cannot be entered by .*chmod u\+rx"):
        survey(cache)


def test_links_that_lead_nowhere_are_unreadable_entries(cache):
    (cache / "jit_gone-cache").symlink_to("nowhere")
    (cache / "jit_loop-cache").symlink_to("jit_loop-cache")
    for module in ("jit_gone", "jit_loop"):
        assert one(cache, module).contents.reason == "it is not an ordinary file"
    assert survey(cache).vanished == 0


def test_a_directory_without_a_name_is_one_clear_error():
    for where in ("", "file://"):
        with pytest.raises(UsageError, match="DIR is empty"):
            open_directory(where)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ImportError("Please install gcsfs"), UsageError, "needs another library .*install gcsfs"),
        (
            RuntimeError("no sign-in"),
            UnusableCacheError,
            "cannot be read: RuntimeError: no sign-in",
        ),
    ],
)
def test_what_a_bucket_raises_is_one_clear_error(monkeypatch, error, kind, text):
    def refuse(where):
        raise error

    module = types.ModuleType("etils.epath")
    module.Path = refuse
    monkeypatch.setitem(sys.modules, "etils", types.ModuleType("etils"))
    monkeypatch.setitem(sys.modules, "etils.epath", module)
    with pytest.raises(kind, match=text):
        open_directory("gs://team/cache")


def test_a_cache_of_xla_that_vanishes_while_it_is_counted_is_no_error(cache, monkeypatch):
    place = cache / "xla_gpu_per_fusion_autotune_cache_dir" / "below"
    place.mkdir(parents=True)
    listed = os.scandir

    def vanishing(path):
        if Path(path) == place:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    assert [sub.files for sub in survey(cache).sub_caches] == [0]
