"""Private names of JAX stand in one file; its functions are replaced while somebody listens."""

import contextlib
import functools
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import harness
from harness.cache.ledger import ledger
from harness.errors import HarnessError, LedgerError, ProfileError
from harness.jaxhooks import jax_names

HARNESS = Path(__file__).resolve().parents[2] / "harness"
PRIVATE = re.compile(r"jax[./\\]_src|jaxlib\._|\b_jax\b|/jax/(core|compilation_cache)/")


def test_private_names_of_jax_stand_in_one_file():
    elsewhere = [
        f"{file.relative_to(HARNESS.parent)}:{number}: {line.strip()}"
        for file in sorted(HARNESS.rglob("*.py"))
        if file.name != "jax_names.py"
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if PRIVATE.search(line)
    ]
    assert elsewhere == []


IMPORT = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root.parent))
for file in sorted((root / "jaxhooks").rglob("*.py")):
    name = ".".join(("harness", *file.relative_to(root).with_suffix("").parts))
    importlib.import_module(name.removesuffix(".__init__"))
print(*sys.modules)
"""


def test_it_needs_the_standard_library_alone():
    words = [sys.executable, "-I", "-S", "-c", IMPORT, str(HARNESS)]
    names = set(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.split())
    known = {*sys.stdlib_module_names, "harness", "__main__"}
    tops = {name.partition(".")[0] for name in names}
    assert {top for top in tops - known if not top.startswith("_sys")} == set()
    rooms = {".".join(name.split(".")[:2]) for name in names if name.startswith("harness.")}
    assert rooms == {"harness.jaxhooks", "harness.errors"}


@pytest.mark.parametrize("table", [jax_names.DURATIONS, jax_names.CACHE_EVENTS])
def test_events_of_jax_are_known_to_it(table):
    sources = "".join(
        Path(jax_names.module(name).__file__).read_text()
        for name in ("dispatch", "compiler", "compilation_cache", "interpreters.pxla")
    )
    assert [event for event in table if event not in sources] == []


# --- what is replaced -----------------------------------------------------------------------------

X = np.ones(3, np.float32)
KINDS = {
    "ledger": (ledger, jax_names.REQUESTS, "compiler", "compile_or_get_cached", LedgerError),
    "profile": (harness.profile, jax_names.BUILDS, "pjit", "_infer_params", ProfileError),
}
kinds = pytest.mark.parametrize(("opened", "names", "module", "name", "error"), KINDS.values())


def points():
    """Return what stands in every place of JAX that is ever replaced, and what it hides."""
    return [
        *(
            point.function
            for names in (jax_names.BUILDS, jax_names.REQUESTS)
            for point in jax_names.points(names, "test", HarnessError).values()
        ),
        *jax_names.module("source_info_util")._exclude_paths,
    ]


def built(opened):
    """Return how many builds or requests were seen."""
    return len(opened.events if hasattr(opened, "events") else opened.builds)


def work(number):
    return jax.jit(lambda x: x * number)(X)


@kinds
@pytest.mark.parametrize("failing", [False, True])
def test_the_last_to_leave_puts_everything_back(opened, names, module, name, error, failing):
    before = points()
    with contextlib.suppress(ZeroDivisionError), opened() as outer:
        with opened() as inner:
            work(1.5)
        during = [point.function for point in jax_names.points(names, "", error).values()]
        assert not any(one is other for one in before for other in during)
        work(2.5)
        if failing:
            raise ZeroDivisionError
    assert all(one is other for one, other in zip(before, points(), strict=True))
    work(3.5)
    assert (built(inner), built(outer)) == (1, 2)


@kinds
def test_somebody_else_may_replace_the_same_functions(
    opened, names, module, name, error, monkeypatch
):
    called = []

    def around(real, label):
        return functools.wraps(real)(lambda *a, **k: (called.append(label), real(*a, **k))[1])

    place = jax_names.module(module)
    monkeypatch.setattr(place, name, around(getattr(place, name), "before"))
    with opened() as first:
        after = around(getattr(place, name), "after")
        setattr(place, name, after)
        work(4.5)
    assert called[:2] == ["after", "before"]
    assert getattr(place, name) is after  # theirs stays; ours underneath passes everything on
    work(5.5)
    with opened() as again:
        work(6.5)
    assert (built(first), built(again)) == (1, 1)


@kinds
def test_a_jax_that_is_not_known_is_refused_and_left_alone(
    opened, names, module, name, error, monkeypatch
):
    before = points()
    wrong = {**names, "wrong": jax_names.Name("compiler", "_no_such_name")}
    monkeypatch.setattr(jax_names, "REQUESTS" if names is jax_names.REQUESTS else "BUILDS", wrong)
    said = r"does not know jax \d.*: it lacks jax\._src\.compiler\._no_such_name\. .* newer"
    with pytest.raises(error, match=said), opened():
        pass
    monkeypatch.undo()
    assert all(one is other for one, other in zip(before, points(), strict=True))


def test_an_argument_that_a_release_lacks_is_named(monkeypatch):
    monkeypatch.setattr(jax_names.module("compiler"), "_cache_write", lambda something: None)
    with pytest.raises(LedgerError, match=r"_cache_write\(cache_key=\)"), ledger():
        pass
