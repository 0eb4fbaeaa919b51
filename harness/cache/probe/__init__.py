"""Experiments on the persistent cache of a real installation: what a user expects, what happens."""

from __future__ import annotations

from harness.cache.probe.findings import Finding as Finding
from harness.cache.probe.findings import ProbeError as ProbeError
from harness.cache.probe.findings import Report as Report
from harness.cache.probe.findings import Run as Run
from harness.cache.probe.findings import check_writable as check_writable
from harness.cache.probe.findings import load as load
from harness.cache.probe.findings import save as save
from harness.cache.probe.rows import ROWS as ROWS
from harness.cache.probe.rows import choose as choose
from harness.cache.probe.rows import probe as probe
