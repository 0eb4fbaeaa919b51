"""Records of what could not even be imported: healthy before, it is broken and not just absent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from harness.engine.context import Context, Options, SweepName, record_fields
from harness.records.schema import INSTRUMENTS, SCHEMA, Record, digest, to_raw

HEALTHY = "it can be used again"


def broken_records(
    broken: Mapping[str, str],
    known: Iterable[Record],
    context: Context,
    options: Options,
    sweep: SweepName,
) -> Iterator[Record]:
    """Yield a record of each module or workload that is broken now, or was and is no more.

    It has no case, because nobody can say which there are: no transform, axes or version.

    `broken` has names of modules and workloads (`dense`, `dense.Mlp`), and why; `known` is what the
    store has.
    """
    before = {
        record.workload: record.reason
        for record in known
        if not record.transform and not record.version and record.workload not in INSTRUMENTS
    }
    for name, reason in {**dict.fromkeys(before, HEALTHY), **broken}.items():
        if before.get(name) == reason:
            continue
        own = (SCHEMA, "broken", name, context.machine, context.env, context.commit.hash)
        yield Record(
            key=digest(*own),
            replicate="",
            workload=name,
            version="",
            axes={},
            transform="",
            target="",
            scenario="off",
            status="failed" if name in broken else "skipped",
            reason=reason,
            protocol="",
            started_at_ms=time.time_ns() // 1_000_000,
            environment=to_raw({}),
            **record_fields(context, options, sweep),
        )
