"""Set a repository up for measuring: asv's configuration, a first workload, two workflows."""

from __future__ import annotations

from harness.scaffold.adopted import Adopted as Adopted
from harness.scaffold.adopted import adopt as adopt
from harness.scaffold.files import File as File
from harness.scaffold.files import plan as plan
from harness.scaffold.files import write as write
from harness.scaffold.function import Checked as Checked
from harness.scaffold.function import ChosenFunction as ChosenFunction
from harness.scaffold.function import check as check
from harness.scaffold.function import parse as parse
from harness.scaffold.project import Project as Project
from harness.scaffold.project import look as look
