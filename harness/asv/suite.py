"""The asv adapter: gives every workload what asv looks for in a benchmark class.

Measuring happens once per workload, in `setup_cache`; the `track_*` readers only look up, wake no
JAX backend, and cost milliseconds each. What asv keeps is one value per process.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import linecache
import math
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from harness import targets
from harness.asv.call import SETUP, AsvCall, end_server
from harness.asv.metrics import FACT_METRICS, METRICS, Answer, case_metrics, process_metrics
from harness.jaxhooks import jax_names
from harness.stages.registry import ALONE, ALONE_METRICS, STAGES
from harness.workload.check import check
from harness.workload.source import NO_SOURCE, source_lines, source_of, version_of
from harness.workload.workload import Case, Workload, WorkloadError, declaration_hooks, name_of

SETUP_TIMEOUT_S = 7 * 24 * 3600
"""asv's own limit is far away: the harness stops a case that hangs, not the whole sweep."""


class MeasurementFailed(Exception):
    """Shown by asv as "failed"; `asv run -e` prints the reason."""


_shown = {"facts": False}


def install(facts: bool = False) -> None:
    """Make every workload declared from now on a benchmark that asv discovers.

    Args:
        facts: whether asv shows the facts of programs too, as `track_facts` of each workload.
    """
    _shown["facts"] = facts
    end_server()
    _no_hooks_of_asv()
    _setups_in_server()
    if attach not in declaration_hooks:
        declaration_hooks.append(attach)


def _no_hooks_of_asv() -> None:
    """Keep asv's `setup` and `teardown` from readers, and workloads from being either.

    asv_runner calls whatever in a benchmark's class or module is called so, in any case: a workload
    `Setup`, a constant `SETUP`. A reader only looks up, and needs none.
    """
    base: Any = sys.modules.get("asv_runner.benchmarks._base")  # only asv's own processes have it
    of_asv = getattr(base, "_get_all_attrs", None)
    if of_asv is None or hasattr(of_asv, "__wrapped__"):
        return

    @functools.wraps(of_asv)
    def without_ours(sources: Any, name: str, ignore_case: bool = False) -> Iterator[Any]:
        is_hook = name in ("setup", "teardown")
        if is_hook and hasattr(sources[0], "harness_workload"):
            return
        for one in of_asv(sources, name, ignore_case):
            if not (is_hook and inspect.isclass(one) and issubclass(one, Workload)):
                yield one

    base._get_all_attrs = without_ours


def _setups_in_server() -> None:
    """Have asv's forkserver, if this is it, run what `setup_cache` it is asked for."""
    names = ("asv_runner.server", "asv_runner.setup_cache")  # only asv's own processes have them
    server, setups = map(sys.modules.get, names)
    of_asv: Any = getattr(server, "_run", None)
    if server is None or setups is None or hasattr(of_asv, "__wrapped__"):
        return

    @functools.wraps(of_asv)
    def run(args: tuple[str, ...]) -> None:
        folder, name, params, *_ = args
        extra = json.loads(params)
        if extra.pop(SETUP, False):
            # For standard input, which the server has closed.
            os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)
            own = (folder, name, json.dumps(extra))
            if "jax" in sys.modules and jax_names.bridge().backends_are_initialized():
                # A benchmark woke it on import. A fork has none of its threads, and would wait.
                os.execv(sys.executable, [sys.executable, sys.argv[0], "setup_cache", *own])
            setups._setup_cache(own)
        else:
            of_asv(args)

    vars(server)["_run"] = run


def attach(workload: type[Workload]) -> None:
    """Give one workload its `track_*` readers, or one reader that says how it is wrong."""
    if inspect.isabstract(workload):
        return
    try:
        check(workload)
    except WorkloadError as error:
        text = str(error)

        def track_declaration(self: Any) -> None:
            raise WorkloadError(text)

        track_declaration.__module__ = workload.__module__
        workload.track_declaration = track_declaration  # type: ignore[attr-defined]
        return
    call, axes = AsvCall.current(), coordinate_axes(workload)
    shared = {
        # Once for all readers: finding a class in its file takes milliseconds.
        "version": version_of(workload),
        "pretty_source": source_of(workload),
        "setup_cache": _setup_cache(workload),
        "rounds": call.rounds,
        # asv keeps what it does not know: so the plugin tells ours from other benchmarks.
        "harness_workload": name_of(workload),
        "harness_targets": [repr(name) for name in workload.targets],
    }
    for name in case_metrics(workload):
        _attach(workload, name, axes, shared)
    for name in process_metrics(workload):
        _attach(workload, name, {}, shared)
    if _shown["facts"]:
        _attach(workload, "facts", {"fact": FACT_METRICS, **axes}, shared)


def _attach(
    workload: type[Workload], name: str, axes: dict[str, Any], shared: dict[str, Any]
) -> None:
    unit = METRICS[name].unit if name in METRICS else ""
    stage = STAGES.get(METRICS[name].stage) if name in METRICS else None
    mark = f"+{stage.method}" if stage and stage.method > 1 else ""
    mark = ALONE if name in ALONE_METRICS else mark
    reader = _reader(name)
    reader.__dict__.update(
        shared,
        unit=unit,
        type="time" if unit == "seconds" else "track",
        # asv's own name, said outright: imported into another module, it is the same benchmark.
        benchmark_name=f"{name_of(workload)}.track_{name}",
        version=shared["version"] + mark,
        params=[list(values) for values in axes.values()],
        param_names=list(axes),
    )
    reader.__qualname__ = f"{workload.__qualname__}.track_{name}"
    reader.__module__ = workload.__module__
    setattr(workload, f"track_{name}", reader)


def coordinate_axes(workload: type[Workload]) -> dict[str, Any]:
    """Return the values of each coordinate of a workload's cases, in the order of its cases.

    Without targets that this machine cannot have.
    """
    precision = {"precision": workload.precisions} if workload.precisions else {}
    return {
        **workload.sweep,
        **precision,
        "transform": workload.transforms,
        "target": [name for name in workload.targets if not targets.find(name).absent()],
    }


def _reader(metric: str) -> Callable[..., Any]:
    work: Callable[[], float] | None = None

    def track(self: Workload, answers: Answer, *params: Any) -> Any:
        """Look a figure up; asv's profiler calls a second time, and sees the work."""
        nonlocal work
        stage, case_params = (params[0], params[1:]) if metric == "facts" else (metric, params)
        call = AsvCall.current()
        if work is not None:
            return work()
        if call.profile == "profile":
            figure = math.nan  # nothing is measured: asv shows n/a, and not "failed"
        else:
            figure = look_up(type(self), answers, stage, case_params)
        if call.profile:
            from harness.asv.measure import work_of  # other readers, a process each, need none

            work = work_of(type(self), case_at(type(self), case_params), stage)
        return figure

    track.__name__ = f"track_{metric}"
    return track


def look_up(workload: type[Workload], answers: Answer, stage: str, params: tuple[Any, ...]) -> Any:
    """Return asv's result for one stage of one case: `{"samples": [seconds], "number": 1}`.

    Raises:
        SkipNotImplemented: there is nothing to measure here; asv shows "n/a".
        MeasurementFailed: with the reason.
    """
    # A plain NotImplementedError in a benchmark's body is a failure for asv_runner 0.3.
    from asv_runner.benchmarks.mark import SkipNotImplemented

    case = case_at(workload, params)
    answered = answers["cases"].get(case.id) if params else answers["process"]
    if answered is None:
        lacking = targets.find(case.target).lacking()
        raise SkipNotImplemented(lacking or f"{case.id} was not measured")
    answer = answered.get(stage, {"skip": f"no stage {stage} here"})
    if "skip" in answer:
        raise SkipNotImplemented(answer["skip"])
    if "fail" in answer:
        raise MeasurementFailed(answer["fail"])
    return answer


def case_at(workload: type[Workload], params: tuple[Any, ...]) -> Case:
    """Return the case that asv means by the values of its parameters."""
    if not params:
        return Case()
    *values, transform, target = params
    precision = values.pop() if workload.precisions else ""
    return Case(dict(zip(workload.sweep, values, strict=True)), transform, target, precision)


# Where asv finds it


_lines = itertools.count(1)


def _setup_cache(workload: type[Workload]) -> Callable[[], Answer]:
    """Return a `setup_cache` of this workload's own.

    asv identifies one by module and line, and `inspect` walks up from that line to the nearest
    `def` (Python 3.11 and 3.12), so that one inherited or made here would hand every workload the
    numbers of the first. Each gets a page of its own in `linecache`, whose one `def` stands at the
    line of the workload's class.
    """

    def setup_cache() -> Answer:
        from harness.asv.measure import measure  # a reader measures nothing

        return measure(workload)

    try:
        line = source_lines(workload)[1]
    except NO_SOURCE:
        line = 1_000_000 + next(_lines)  # made by `type`: no line of its own, but asv wants one
    page = f"<harness {workload.__module__}.{workload.__qualname__}>"
    text = [*["\n"] * (line - 1), f"def setup_cache():  # measures {name_of(workload)}\n"]
    linecache.cache[page] = (sum(map(len, text)), None, text, page)
    code = setup_cache.__code__.replace(co_filename=page, co_firstlineno=line)
    own = types.FunctionType(
        code, setup_cache.__globals__, "setup_cache", None, setup_cache.__closure__
    )
    own.__module__ = workload.__module__
    own.__dict__["timeout"] = SETUP_TIMEOUT_S
    return own
