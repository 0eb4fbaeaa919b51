"""A place that is no cache directory, or cannot be read, is one clear error."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import types
from pathlib import Path

import pytest

from harness.cache.directory import UnusableCacheError, open_directory
from harness.cache.survey import survey
from harness.errors import UsageError


@pytest.fixture
def bucket(monkeypatch):
    """Put a path class in the place of etils.epath's: there is no bucket to test with."""

    def stand_in(path):
        module = types.ModuleType("etils.epath")
        module.Path = path
        monkeypatch.setitem(sys.modules, "etils", types.ModuleType("etils"))
        monkeypatch.setitem(sys.modules, "etils.epath", module)

    return stand_in


@pytest.mark.parametrize("verb", ["doctor", "inspect"])
def test_a_command_ends_with_that_error_and_its_exit_code(tmp_path, says, verb):
    (tmp_path / "file").touch()
    for where, code, text in (
        (tmp_path / "nowhere", 2, "nowhere cannot be listed: No such file or directory. JAX makes"),
        (tmp_path / "file", 5, "file cannot be listed: Not a directory. Expected"),
        ("", 2, "DIR is empty"),
        ("file://", 2, "DIR is empty"),
    ):
        assert says(verb, where, code=code, said=text) == ""
    says(verb, code=2, said="DIR")


@pytest.mark.parametrize(("mode", "what"), [(0o000, "listed"), (0o444, "entered")])
def test_a_directory_that_refuses_its_user_is_one_clear_error(fill, mode, what):
    uid = os.geteuid()
    with tempfile.TemporaryDirectory() as place:  # pytest's own lets nobody else enter
        os.chmod(place, 0o755)
        cache = shutil.copytree(fill(), Path(place, "cache"))
        cache.chmod(mode)
        if uid == 0:  # whom modes do not bind
            os.seteuid(65534)
        try:
            text = rf"cannot be {what}: Permission denied.*chmod u\+rx"
            with pytest.raises(UnusableCacheError, match=text):
                survey(open_directory(str(cache)))
        finally:
            os.seteuid(uid)
            cache.chmod(0o755)


def test_a_bucket_without_its_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "etils.epath", None)
    with pytest.raises(UsageError, match=r"gs://team/cache .*pip install 'etils\[epath\]'"):
        open_directory("gs://team/cache")


def test_beside_etils_a_file_address_ends_with_the_path_to_give(bucket, tmp_path):
    bucket(Path)
    with pytest.raises(UsageError, match=rf"KeyError 'file://'.* {tmp_path}\.$"):
        open_directory(f"file://{tmp_path}")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ImportError("Please install gcsfs"), UsageError, "needs another library .*install gcsfs"),
        (RuntimeError("no sign-in"), UnusableCacheError, "be read: RuntimeError: no sign-in"),
    ],
)
def test_what_a_bucket_raises_is_one_clear_error(bucket, error, kind, text):
    def refuse(where):
        raise error

    bucket(refuse)
    with pytest.raises(kind, match=text):
        open_directory("gs://team/cache")


def test_a_bucket_is_read_through_its_library(fill, bucket):
    cache = fill()

    class Remote(type(cache)):
        def stat(self, **options):
            seen = os.stat(self)
            more = {"length": seen.st_size, "mtime": int(seen.st_mtime)}
            return types.SimpleNamespace(st_mode=seen.st_mode, **more)

    bucket(lambda where: Remote(where.replace("gs://team/cache", str(cache))))
    seen = survey(open_directory("gs://team/cache"))
    assert [entry.contents.state for entry in seen.entries] == ["readable"] * 3
    assert {(entry.used_source, entry.never_read) for entry in seen.entries} == {("unknown", None)}
    written = [int(file.stat().st_mtime) for file in cache.glob("*-cache")]
    assert sorted(entry.written_at for entry in seen.entries) == sorted(written)
    with pytest.raises(UsageError, match="no directory gs://elsewhere"):
        open_directory("gs://elsewhere")
