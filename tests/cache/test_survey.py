"""All entries of a directory, what they add up to, and how `harness cache inspect` shows them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.cache.directory import LocalDirectory, open_directory
from harness.cache.executable import KNOWN_FORMATS
from harness.cache.survey import evictions, survey
from harness.jaxhooks import jax_names
from tests import forks
from tests.cache.filled import CAP, backdate, entry_of, run_jax


def look(directory):
    return survey(open_directory(str(directory)))


def one(directory, module="jit_first"):
    (entry,) = (entry for entry in look(directory).entries if entry.module == module)
    return entry


def test_every_entry_of_real_jax_is_read(fill):
    cache = fill()
    seen = look(cache)
    assert [entry.module for entry in seen.entries] == ["jit_first", "jit_second", "jit_third"]
    for entry in seen.entries:
        path = cache / f"{entry.name}-cache"
        assert re.fullmatch("[0-9a-f]{64}", entry.key)
        assert entry.size_bytes == path.stat().st_size
        assert entry.written_at == pytest.approx(path.stat().st_mtime)
        assert entry.contents.state == "readable"
        assert entry.contents.compile_whole_s in range(60)  # whole seconds
        assert entry.contents.executable.format in KNOWN_FORMATS
    assert not seen.capped


def test_the_last_use_is_the_record_of_jax_under_a_cap_and_else_the_file_systems(fill):
    capped = fill(CAP)
    entry = one(capped)
    recorded = (capped / f"{entry.name}-atime").read_bytes()
    assert entry.used_source == "atime-file"
    assert entry.used_ns == int.from_bytes(recorded, "little")
    assert look(capped).capped
    assert one(fill()).used_source == "file-system"


@pytest.mark.parametrize("cap", [-1, CAP])
def test_an_entry_that_jax_has_read_is_no_longer_unread(tmp_path, cap):
    directory = tmp_path / "cache"
    run_jax(directory, cap=cap)
    assert all(entry.never_read for entry in look(directory).entries)
    backdate(directory)
    assert run_jax(directory, cap=cap, functions=1)["hits"] == 1
    if cap == -1 and os.statvfs(directory).f_flag & os.ST_NOATIME:
        pytest.skip("this file system keeps no times of last access")
    read = {entry.module for entry in look(directory).entries if not entry.never_read}
    assert read == {"jit_first"}


def test_reading_leaves_every_file_as_it_was(fill):
    cache = fill()

    def times():
        seen = {path.name: path.stat() for path in cache.iterdir()}
        return {name: (one.st_atime_ns, one.st_mtime_ns) for name, one in seen.items()}

    before = times()
    look(cache)
    assert times() == before


def test_names_that_jax_did_not_choose_and_what_is_no_file_are_shown_as_they_are(fill):
    cache = fill()
    shutil.copy(entry_of(cache, "jit_first"), cache / "planted-cache")
    os.mkfifo(cache / f"jit_pipe-{'0' * 64}-cache")  # reading it would block
    (cache / "jit_gone-cache").symlink_to("nowhere")
    (cache / "jit_loop-cache").symlink_to("jit_loop-cache")
    assert one(cache, "planted").key == ""
    for module in ("jit_pipe", "jit_gone", "jit_loop"):
        contents = one(cache, module).contents
        assert (contents.state, contents.fault) == ("unreadable", "not-a-file")
    assert look(cache).vanished == 0


def test_entries_that_vanish_while_they_are_read_are_counted(fill, monkeypatch):
    cache = fill()
    looked = LocalDirectory.look

    def vanishing(self, name):
        if name.startswith("jit_first"):
            (cache / name).unlink()
        return looked(self, name)

    monkeypatch.setattr(LocalDirectory, "look", vanishing)
    seen = look(cache)
    assert (len(seen.entries), seen.vanished) == (2, 1)


def test_caches_of_xla_are_counted_and_quarantines_are_not(fill, monkeypatch):
    cache = fill()
    below = cache / "xla_gpu_per_fusion_autotune_cache_dir" / "below"
    below.mkdir(parents=True)
    (below.parent / "one").write_bytes(bytes(10))
    shutil.copytree(cache, cache / "quarantine-20260101T000000Z", ignore=lambda *_: ["quarantine"])
    seen = look(cache)
    assert len(seen.entries) == 3
    assert [(sub.files, sub.size_bytes) for sub in seen.sub_caches] == [(1, 10)]
    assert seen.quarantines == ("quarantine-20260101T000000Z",)
    listed = os.scandir

    def vanishing(path):
        if Path(path) == below:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    assert [sub.files for sub in look(cache).sub_caches] == [1]


def test_evictions_are_those_that_jax_then_makes(tmp_path):
    directory = tmp_path / "cache"
    run_jax(directory, cap=CAP)
    run_jax(directory, cap=CAP, functions=1)  # the first is now the newest used
    seen = look(directory)
    size_bytes = sum(entry.size_bytes for entry in seen.entries)
    due = evictions(seen.entries, size_bytes - 1)
    order = [name.partition("-")[0] for name in due.due + due.then]
    assert order == ["jit_second", "jit_third", "jit_first"]
    assert evictions(seen.entries, CAP).due == ()
    script = (
        "import sys; from jax._src.lru_cache import LRUCache\n"
        "LRUCache(sys.argv[1], max_size=int(sys.argv[2])).put('new', b'1')"
    )
    command = [sys.executable, "-c", script, str(directory), str(size_bytes)]
    forks.run(command, check=True, timeout=60)
    left = {entry.name for entry in look(directory).entries}
    assert {entry.name for entry in seen.entries} - left == set(due.due)


def test_inspect_prints_rows_and_totals_over_all(fill, says):
    text = says("inspect", fill(), "--limit", 1, "--sort", "name")
    assert "jit_first" in text
    assert "jit_second" not in text
    answer = text.splitlines()[0]
    assert re.search(r"3 entries \(1 shown; --limit 0 shows all\).*3 readable", answer)


def test_inspect_prints_json_of_everything(fill, says):
    capped = fill(CAP)
    (capped / os.fsdecode(b"jit_\xff-cache")).write_bytes(b"")  # a name that is not text
    seen = json.loads(says("inspect", capped, "--format=json", "--limit", 1, "--max-size", 0))
    assert seen["schema"] == 2
    entries = seen["survey"]["entries"]
    size_bytes = sum(path.stat().st_size for path in capped.glob("*-cache"))
    processor = next(filter(None, (one["contents"]["executable"]["processor"] for one in entries)))
    release = next(iter(seen["totals"]["releases"]))  # 0.12.0.1 writes as 0.12.0
    assert jax_names.version().startswith(release)
    assert seen["totals"] == {
        "entries": 4,
        "size_bytes": size_bytes,
        "compile_whole_s": sum(one["contents"]["compile_whole_s"] or 0 for one in entries),
        "states": {"empty": 1, "readable": 3},
        "compressions": {"unknown": 1, "zlib": 3},
        "never_read": sum(entry["never_read"] for entry in entries),
        "last_use": {"within a day": {"entries": 4, "size_bytes": size_bytes}},
        "compiled_for": {
            processor: {"entries": 3, "size_bytes": size_bytes},
            "": {"entries": 1, "size_bytes": 0},
        },
        "releases": {
            release: {"entries": 3, "size_bytes": size_bytes},
            "unknown": {"entries": 1, "size_bytes": 0},
        },
        "modules": {
            entry["module"]: {"entries": 1, "size_bytes": entry["size_bytes"]} for entry in entries
        },
    }
    assert len(entries) == 4
    assert len(seen["evictions"]["due"]) == 4
    assert seen["evictions"]["due"][0] == "jit_\udcff"  # no time of use: the first to go


def test_a_clock_that_went_backwards_an_empty_directory_and_an_unknown_order(fill, tmp_path, says):
    cache = fill()
    os.utime(entry_of(cache, "jit_first"), (time.time() + 3600,) * 2)
    assert re.search(r"3\d{3} s ahead", says("inspect", cache))
    (tmp_path / "empty").mkdir()
    says("inspect", tmp_path / "empty", said="0 entries")
    says("inspect", cache, "--sort", "colour", code=2, said="Expected one of size, age")


def test_reading_a_cache_imports_neither_jax_nor_pandas(fill):
    script = (
        "import sys; from harness.cache import directory, doctor, survey\n"
        f"doctor.diagnose(survey.survey(directory.open_directory({str(fill())!r})))\n"
        "assert not {'jax', 'jaxlib', 'pandas', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_entries_are_written_in_every_format_and_into_a_file(fill, tmp_path, says):
    cache, rows = fill(), tmp_path / "rows.csv"
    (cache / os.fsdecode(b"jit_\xff-cache")).write_bytes(b"")
    markdown = says("inspect", cache, "--format", "markdown", said="| module | key |")
    assert "4 entries" in markdown
    says("inspect", cache, "--format", "table", said="4 entries")
    says("inspect", cache, "--format", "csv", "-o", rows)
    heading, *lines = rows.read_text().splitlines()
    assert {"name", "size_bytes", "contents.state"} <= set(heading.split(","))
    assert len(lines) == 4
