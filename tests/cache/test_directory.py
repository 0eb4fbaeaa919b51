"""A place that is no cache directory, or cannot be read, is one clear error."""

from __future__ import annotations

import builtins
import os
import sys
import types
from pathlib import Path

import pytest

from harness.cache.directory import UnusableCacheError, open_directory
from harness.cache.survey import survey
from harness.errors import UsageError
from tests.cache.filled import run_harness


def raising(error):
    def refuse(*arguments):
        raise error

    return refuse


@pytest.fixture
def bucket(monkeypatch):
    """Put a path class in the place of etils.epath's: there is no bucket to test with."""

    def stand_in(path):
        module = types.ModuleType("etils.epath")
        module.Path = path
        monkeypatch.setitem(sys.modules, "etils", types.ModuleType("etils"))
        monkeypatch.setitem(sys.modules, "etils.epath", module)

    return stand_in


def test_no_directory_and_a_file_in_its_place_are_told(tmp_path):
    with pytest.raises(
        UnusableCacheError, match=r"nowhere cannot be listed: No such file.*Expected"
    ):
        open_directory(str(tmp_path / "nowhere"))
    (tmp_path / "file").touch()
    with pytest.raises(
        UnusableCacheError, match=r"file cannot be listed: Not a directory. Expected"
    ):
        open_directory(str(tmp_path / "file"))
    for where in ("", "file://"):
        with pytest.raises(UsageError, match="DIR is empty"):
            open_directory(where)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["doctor", "{tmp}/nowhere"], 5, "nowhere cannot be listed"),
        (["doctor", "{tmp}/file"], 5, "file cannot be listed"),
        (["inspect", "{tmp}/nowhere"], 5, "nowhere cannot be listed"),
        (["doctor"], 2, "DIR"),
    ],
)
def test_a_command_ends_with_that_error_and_its_exit_code(tmp_path, arguments, code, text):
    (tmp_path / "file").touch()
    done = run_harness(*(part.format(tmp=tmp_path) for part in arguments))
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_the_directory_of_another_user_is_one_clear_error(tmp_path):
    tmp_path.chmod(0o700)
    os.seteuid(65534)
    try:
        with pytest.raises(UnusableCacheError, match="cannot be listed: Permission denied"):
            open_directory(str(tmp_path))
    finally:
        os.seteuid(0)


def test_a_directory_that_refuses_is_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "listdir", raising(OSError(5, "Input/output error")))
    with pytest.raises(UnusableCacheError, match=r"Input/output error"):
        open_directory(str(tmp_path))


def test_a_directory_that_may_be_listed_but_not_entered_is_one_clear_error(fill, monkeypatch):
    cache = fill()

    def without_entering(look):
        def refuse(path, **more):
            if str(path).startswith(f"{cache}/"):
                raise PermissionError(13, "Permission denied", str(path))
            return look(path, **more)

        return refuse

    monkeypatch.setattr(os, "stat", without_entering(os.stat))
    monkeypatch.setattr(os, "lstat", without_entering(os.lstat))
    with pytest.raises(
        UnusableCacheError, match=r"cannot be entered: Permission denied.*chmod u\+rx"
    ):
        survey(open_directory(str(cache)))


def test_a_bucket_without_its_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "etils.epath", None)
    with pytest.raises(UsageError, match=r"gs://team/cache .*pip install 'etils\[epath\]'"):
        open_directory("gs://team/cache")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ImportError("Please install gcsfs"), UsageError, "needs another library .*install gcsfs"),
        (RuntimeError("no sign-in"), UnusableCacheError, "be read: RuntimeError: no sign-in"),
    ],
)
def test_what_a_bucket_raises_is_one_clear_error(bucket, error, kind, text):
    bucket(raising(error))
    with pytest.raises(kind, match=text):
        open_directory("gs://team/cache")


def test_a_bucket_is_read_through_its_library(fill, bucket):
    cache = fill()

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

    bucket(Remote)
    seen = survey(open_directory("gs://team/cache"))
    assert [entry.contents.state for entry in seen.entries] == ["readable"] * 3
    assert {(entry.used_source, entry.never_read) for entry in seen.entries} == {("unknown", None)}
    written = [int(file.stat().st_mtime) for file in cache.glob("*-cache")]
    assert sorted(entry.written_at for entry in seen.entries) == sorted(written)
    with pytest.raises(UnusableCacheError, match="no directory gs://elsewhere"):
        open_directory("gs://elsewhere")
