"""What docs/cache.md says of processes that share a cache, tried on this JAX."""

import pytest

from harness.targets import registry
from tools.cache_sharing import Arrangement, NoJob, share, share_binary, sums
from tools.cache_topologies import GPU, TPU, Place, compile_for, difference


@pytest.fixture(scope="module")
def independent(tmp_path_factory):
    folder = tmp_path_factory.mktemp("independent")
    return [share(Arrangement("2", 2), folder) for _ in ("cold", "warm")]


@pytest.fixture(scope="module")
def distributed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("distributed")
    try:
        return [share(Arrangement("2", 2, distributed=True), folder) for _ in ("cold", "warm")]
    except NoJob as reason:
        pytest.skip(f"no distributed job here: {reason}")


def test_processes_that_start_together_all_compile_and_then_all_load(independent):
    cold, warm = map(sums, independent)
    assert (cold["requests"], cold["keys"]) == (4, 2)
    assert cold["compiled"] == 4 - cold["loaded"] >= 2
    assert cold["wasted"] == cold["repeated"] == cold["compiled"] - 2
    assert cold["wrote"] + cold["write lost"] == cold["compiled"]
    assert (warm["loaded"], warm["compiled"], warm["wrote"]) == (4, 0, 0)


def test_only_process_0_of_a_distributed_job_writes_and_is_ever_warm(distributed):
    (first, second), (first_again, second_again) = ([sums([one]) for one in r] for r in distributed)
    assert (first["wrote"], second["wrote"]) == (2, 0)
    assert (first_again["loaded"], second_again["loaded"]) == (2, 0)
    assert sums(distributed[0])["wasted"] == 0
    assert sums(distributed[0])["repeated"] == 2


def test_keys_of_a_distributed_job_differ_in_the_accelerator_config_alone(independent, distributed):
    """A JAX that mends it fails here, and the page has to change."""

    def parts(process):
        return {part.name: part.sha256 for part in process[0].components}

    first, second = map(parts, distributed[0])
    assert {name for name in first if first[name] != second[name]} == {"accelerator_config"}
    alone = parts(independent[0][0])
    assert alone["accelerator_config"] == first["accelerator_config"]


def test_a_process_that_is_to_be_handed_an_executable_waits_until_the_time_is_over(
    tmp_path, distributed
):
    asked = Arrangement("2", 2, distributed=True, settings=share_binary(1))
    with pytest.raises(RuntimeError, match=r"GetKeyValue\(\) timed out"):
        share(asked, tmp_path)


def test_under_a_size_cap_there_is_a_lock_and_the_wait_for_it_is_noted(tmp_path):
    capped = Arrangement("2", 2, settings={"JAX_COMPILATION_CACHE_MAX_SIZE": str(10**9)})
    processes = share(capped, tmp_path)
    assert all(event.lock_wait_ns > 0 for process in processes for event in process)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("target", "small", "large", "kind", "more"),
    [
        (TPU, "v5e:2x2", "v5e:2x4", "TPU v5 lite", "; the processes of the run, 1 became 2"),
        (GPU, "1x1x4", "1x1x8", "NVIDIA H200", ""),
    ],
)
def test_an_entry_of_one_topology_is_none_of_another_with_more_devices(
    tmp_path, target, small, large, kind, more
):
    if lacking := registry.find(target).lacking():
        pytest.skip(lacking)
    ledgers = []
    for number, topology in enumerate((small, small, large)):
        ledgers.append(tmp_path / f"{number}.jsonl")
        compile_for(Place(target, topology, 1), ledgers[-1], tmp_path / "cache")
    assert difference(*ledgers[:2]) == []
    assert difference(ledgers[0], ledgers[2]) == [
        f"accelerator_config (the devices of the process, 4 {kind} became 8 {kind}{more})"
    ]
