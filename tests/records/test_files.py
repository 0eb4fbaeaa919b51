"""A file is there whole, or as it was."""

import pytest

from harness.records.files import replaced


@pytest.mark.parametrize(("mode", "content"), [("w", "größer\n"), ("wb", b"\x00\xff")])
def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path, mode, content):
    file = tmp_path / "new folder" / "file"
    with replaced(file, mode) as handle:
        handle.write(content)
    written = file.read_bytes()
    assert written == (content if mode == "wb" else content.encode())

    def interrupted():
        with replaced(file, mode) as handle:
            handle.write(content[:1])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert file.read_bytes() == written
    assert list(file.parent.iterdir()) == [file]
