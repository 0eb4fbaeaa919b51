"""Entries that are whole, and that programs may not find: other options, keys, paths, releases."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from harness.cache import doctor
from harness.cache.directory import open_directory
from harness.cache.executable import XlaOptions
from harness.cache.survey import survey
from tests.cache.filled import START, diagnose, environment, the
from tests.cache.planted import EARLY

FAST = "--xla_cpu_enable_fast_math"
PARTITIONED = """
from jax.experimental.custom_partitioning import custom_partitioning
filling = [object() for _ in range(int(sys.argv[1]))]
@custom_partitioning
def twice(x): return x * 2
def partition(mesh, given, result):
    return mesh, lambda x: x * 2, given[0].sharding, (given[0].sharding,)
twice.def_partition(partition=partition, sharding_rule="i j -> i j",
                    infer_sharding_from_operands=lambda mesh, given, result: given[0].sharding)
mesh = Mesh(np.array(jax.devices()), ('x',))
def model(x): return twice(x) + 1
jax.jit(model, in_shardings=NamedSharding(mesh, P('x')))(x)
"""


def run(cache, program, *words, **variables):
    command = [sys.executable, "-c", START + program, *words]
    subprocess.run(command, env=environment(cache, **variables), check=True)


def test_which_option_differs_and_that_none_does_is_read_from_the_entries(tmp_path):
    cache = tmp_path / "cache"
    for flags in (f"{FAST}=true", f"{FAST}=false", ""):
        run(cache, "jax.jit(first)(x)", XLA_FLAGS=flags)
    diagnosis = diagnose(cache)
    facts = the(diagnosis, "other-options").facts
    options = [(one["name"], one["values"]) for one in facts["options"]]
    assert (facts["modules"], options) == (
        ["jit_first"],
        [("xla_cpu_enable_fast_math", ["0", "1"])],
    )
    duplicate = the(diagnosis, "duplicate")  # the flag with its default value has a key of its own
    assert (duplicate.facts["modules"], len(duplicate.entries)) == (["jit_first"], 1)
    assert duplicate.fix.command.endswith("--names duplicate | xargs -0 rm --")
    assert diagnosis.state == "healthy"


def test_the_line_that_removes_entries_removes_these_alone(tmp_path, says):
    cache = tmp_path / "cache"
    for flags in (f"{FAST}=true", ""):
        run(cache, "jax.jit(first)(x)\njax.jit(second)(x)", XLA_FLAGS=flags)
    older = the(diagnose(cache), "other-options").entries
    files = says("doctor", cache, "--names", "other-options")
    assert files == "".join(f"{cache / name}-cache\0" for name in older)
    says("doctor", cache, "--names", "torn", said="")
    says("doctor", cache, "--names", "colour", code=2, said="expected one of")


@pytest.mark.nightly
def test_an_address_in_the_key_is_reported_with_the_setting_that_leaves_it_out(tmp_path):
    cache = tmp_path / "cache"
    for filling in ("1", "5000"):
        run(cache, PARTITIONED, filling, JAX_NUM_CPU_DEVICES="2")
    finding = the(diagnose(cache), "duplicate")
    assert (finding.facts["custom_partitioning"], finding.consequence) == (True, "never-found")
    assert finding.fix.command.startswith("JAX_REMOVE_CUSTOM_PARTITIONING_PTR_FROM_CACHE_KEY")


def test_entries_of_another_path_are_reported_where_the_release_hashes_it(fill, tmp_path):
    moved = fill().rename(tmp_path / "moved")
    for release, hashes in (("0.10.2", True), ("0.11.2", False)):
        checks = {finding.check for finding in diagnose(moved, release=release).findings}
        assert ("moved" in checks) == (hashes and EARLY)


def test_entries_of_another_jaxlib_or_processor_than_the_newest_are_listed(fill):
    seen = survey(open_directory(str(fill())))
    first, *rest = seen.entries
    inside = msgspec.structs.replace(
        first.contents.executable, release="0.9.0", processor="abacus", features=()
    )
    contents = msgspec.structs.replace(first.contents, executable=inside)
    other = msgspec.structs.replace(first, contents=contents, written_at=first.written_at - 60)
    diagnosis = doctor.diagnose(msgspec.structs.replace(seen, entries=(other, *rest)))
    for check in ("other-release", "other-device"):
        finding = the(diagnosis, check)
        assert (finding.entries, finding.severity) == ((first.name,), "note")
        assert finding.facts["size_bytes"] == first.size_bytes
        assert f"--names {check}" in finding.fix.command


@pytest.mark.parametrize(
    ("newest", "release"),
    [(512, "0.10.2"), (557, "0.12.0"), (530, ">0.11.0"), (400, "<0.10.2"), (600, ">0.12.0")],
)
def test_the_release_of_jaxlib_follows_from_the_newest_option_that_it_writes(newest, release):
    assert XlaOptions(newest).release == release
