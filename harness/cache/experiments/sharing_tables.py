"""What several processes did with one cache, as frames: per program, and summed up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from harness.cache.experiments.sharing import Program, Report, Round

if TYPE_CHECKING:
    import pandas as pd


def frame(report: Report) -> pd.DataFrame:
    """Return a row per arrangement, scenario, process and program."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for round_ in report.rounds:
        for number, process in enumerate(round_.processes):
            for program in process.programs:
                rows.append(
                    {
                        "workload": report.workload,
                        "arrangement": round_.arrangement,
                        "scenario": round_.scenario,
                        "process": number,
                        **msgspec.structs.asdict(program),
                        "outcome": program.outcome,
                        "waited_s": program.waited_s,
                        "problem": process.problem,
                    }
                )
    return pd.DataFrame(rows)


def summary(report: Report) -> pd.DataFrame:
    """Return a row per process, and one per round with the sums: counts, waste and seconds.

    Of a round alone, since a process compiles no program twice: `wasted` is compilations minus
    distinct keys, and `repeated` compilations minus distinct cases. Where processes do not agree
    on the key of one program, only the second one shows it.
    """
    import pandas as pd

    rows = []
    for round_ in report.rounds:
        every: list[Program] = []
        for number, process in enumerate(round_.processes):
            rows.append({**_base(round_), "process": str(number), **_sums(process.programs)})
            every += process.programs
        if every:
            compiled = [program.key for program in every if program.outcome == "compiled"]
            wasted = len(compiled) - len(set(compiled))
            repeated = len(compiled) - len({p.case for p in every if p.outcome == "compiled"})
            total = {"process": "all", **_sums(every), "wasted": wasted, "repeated": repeated}
            total |= {"entries": f"{round_.entries_before} → {round_.entries_after}"}
            rows.append({**_base(round_), **total})
    return pd.DataFrame(rows)


def _base(round_: Round) -> dict[str, str]:
    return {"arrangement": round_.arrangement, "scenario": round_.scenario}


def _sums(programs: Sequence[Program]) -> dict[str, Any]:
    outcomes = [program.outcome for program in programs]
    writes = [program.write for program in programs]
    return {
        "requests": len(programs),
        "keys": len({program.key for program in programs}),
        "loaded": outcomes.count("loaded"),
        "received": outcomes.count("received"),
        "compiled": outcomes.count("compiled"),
        "wrote": writes.count("wrote"),
        "write_lost": writes.count("already there"),
        "compile_s": sum(program.compile_s or 0.0 for program in programs),
        "waited_s": sum(program.waited_s for program in programs),
    }
