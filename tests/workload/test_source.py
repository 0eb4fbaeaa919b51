"""The text of a class, found without reading its file each time."""

import importlib.util
import inspect
import sys

import pytest

from harness.workload.source import source_lines

TEXT = '''
import functools

def decorated(cls):
    return cls

class Plain:
    """One."""
    class Inner:
        value = 1

@decorated
@functools.partial(lambda cls: cls)
class Decorated(Plain):
    value = 2

def made():
    class Local:
        value = 3
    return Local

if not globals().get("__debug_more__"):
    class Twice:
        value = 4
else:
    class Twice:
        value = 5
'''


@pytest.fixture
def module(tmp_path):
    file = tmp_path / "classes.py"
    file.write_text(TEXT)
    spec = importlib.util.spec_from_file_location("classes_of_a_test", file)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    yield loaded
    del sys.modules[spec.name]


def test_it_is_what_inspect_finds_and_an_edited_file_is_read_again(module):
    for find in ("Plain", "Plain.Inner", "Decorated", "made()", "Twice"):
        cls = eval(find, vars(module))
        assert source_lines(cls) == inspect.getsourcelines(cls)
    with open(module.__file__, "w") as file:
        file.write(TEXT.replace("value = 1", "value = 12345"))
    assert "value = 12345" in "".join(source_lines(module.Plain)[0])
    with pytest.raises((OSError, TypeError)):
        source_lines(type("Made", (), {}))
