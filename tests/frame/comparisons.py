"""Records of comparisons, as their processes leave them."""

from __future__ import annotations

from typing import Any

from harness.program.facts import Facts
from harness.records.schema import Comparison, Record, StageSamples, digest
from tests.frame.trees import record

MB = 10**6
FAST = [20e3, 20.4e3, 19.8e3, 20.2e3]
SLOW = [60e3, 61e3, 59e3, 60.5e3]
WRONG = {"comparable": False, "reasons": ["error 0.3 is above 1e-5"]}
XLA_STAGES = {"trace": 4e6, "lower": 6e6, "compile": 90e6, "load": 10e6}


def side(
    backend: str,
    slopes_us: list[float],
    stages: dict[str, float] | None = None,
    facts: Facts | None = None,
    scenario: str = "off",
    threads: str = "one",
    comparison: dict[str, Any] | None = None,
    **fields: Any,
) -> list[Record]:
    """Return one record per slope; `stages` are ns that every process took besides."""
    fields = {"workload": "softmax.Softmax", "axes": {"width": 4096}, **fields}
    given = {
        "argument_bytes": 60 * MB,
        "output_bytes": 60 * MB,
        "dtypes": ["float32"],
        "comparable": True,
        "error": 1e-7,
        **(comparison or {}),
    }
    about = (fields["workload"], repr(fields["axes"]), fields.get("precision"), fields.get("sweep"))
    return [
        record(
            process,
            {
                **{name: StageSamples([ns]) for name, ns in (stages or {}).items()},
                "slope": StageSamples([slope * 1e3]),
                "latency": StageSamples([slope * 1e3 + 5e3]),
                "dispatch": StageSamples([4e3]),
            },
            key=digest(*about, backend, threads, scenario),
            replicate=f"{backend},{threads}/{scenario}#{process}",
            scenario=scenario,
            facts=facts,
            comparison=Comparison(backend, threads, **given),
            **fields,
        )
        for process, slope in enumerate(slopes_us)
    ]


def xla(slopes_us: list[float], **fields: Any) -> list[Record]:
    """Return XLA's side: 1 launch that moves the least, 120 Mflop, 100 ms cold, 20 ms warm."""
    facts = Facts(launches=1, fusions=1, while_loops=0, flops=120e6, bytes_accessed=120e6)
    return side("xla", slopes_us, XLA_STAGES, **{"facts": facts, **fields})


def numpy(slopes_us: list[float], **fields: Any) -> list[Record]:
    """Return NumPy's side: 5 operations that move 4 times the least."""
    counted = {"operations": 5, "traffic_bytes": 480 * MB, **fields.pop("comparison", {})}
    first_ns = slopes_us[0] * 1e3 + 5e3
    return side("numpy", slopes_us, {"first_call": first_ns}, comparison=counted, **fields)


def ceilings(copy_us: float = 12e3, gemm_us: float = 1e3, **fields: Any) -> list[Record]:
    """Return a copy of 120 MB (10 GB/s by default) and a product of order 1000 (2 Tflop/s)."""
    fields = {"workload": "harness.baselines.ceilings.Ceilings", **fields}
    precise = {"precision": "ieee", **fields}
    four = {"argument_bytes": 8 * MB, "output_bytes": 4 * MB, **fields.pop("comparison", {})}
    return [
        *side("xla", [copy_us * 1.1], axes={"kind": "copy"}, **precise),
        *side("numpy", [copy_us], axes={"kind": "copy"}, **precise),
        *side("xla", [gemm_us], axes={"kind": "gemm"}, **{**precise, "comparison": four}),
    ]
