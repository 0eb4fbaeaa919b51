"""A measuring process that calls one function for the first time, as a user's program does."""

from __future__ import annotations

import time

from harness.engine import channel
from harness.engine.case_run import CaseRun
from harness.engine.job import Bye, Hello
from harness.engine.session import StagedSession
from harness.stages.first_call_case import FirstCallCase
from harness.stages.stage import LOOP

_clock = time.perf_counter_ns


class FirstCallSession(StagedSession):
    """A process that has woken a back end, and does nothing before the first call."""

    def measure(self) -> None:
        """Take the first call of the job's case; nothing else is built, none of memory frozen."""
        self.send(Hello(self.environment, self.load_average))
        began = _clock()
        for ref, case in self.cases():
            called = FirstCallCase(
                self.workload,
                case,
                self.proof,
                spawned_ns=channel.spawned_ns(),
                scenario=self.job.scenario,
                folder=self.job.cache_folder,
                expected=ref.fingerprint,
            )
            run = CaseRun(self, ref, called)
            run.visit(0)
            if not run.over:
                run.finish({LOOP: called.loop_ns})
        self.send(Bye(self.timed_ns, _clock() - began))
