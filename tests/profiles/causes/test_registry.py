"""A cause is added by one new file and its entry, and one that lacks something says so at once."""

from __future__ import annotations

import re
from pathlib import Path

from harness.output.profile_causes import CLAUSES
from harness.output.profile_remedies import TEXTS
from harness.profiles.causes import pytree
from harness.profiles.causes.cause import IDS, PLACES, REMEDIES
from harness.profiles.causes.kinds import KINDS
from tests.added import House
from tests.output.report.pages import embedded

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
from harness.profiles.causes.decide import decide
from harness.output.profile import summary
from harness.profiles.model import Process
from harness.profiles.recorded import Recorded
from harness.output.profile_tables import frame
from harness.output.report.profile.page import write
from harness.jaxhooks import events

S = 10**9
lines = [events.Started(1, 1, 0, "h", "context", (), "/p", "3.12", 0.0, 0, 0, 2, 1)]
lines.append(events.Function(1, "step", "step", "/p/train.py", 3, "program"))
for number, precision in enumerate(("highest", "default"), 1):
    begin = number * S
    context = {"jax_default_matmul_precision": precision}
    span = events.Span("trace", begin, begin + S // 2, 1)
    build = (number, 1, 1, 1, 0, 1, begin, begin + S // 2, (span,))
    lines += [events.Settings(number, {}, context), events.Build(*build, settings=number)]
lines.append(events.Ended(4 * S, "context"))
profile = Recorded((Process("memory", lines[0], tuple(lines)),))
print(*summary(profile), sep="\\n")
print(frame(profile, "causes").to_csv())
write(profile, __import__("pathlib").Path("page.html"))
"""


def test_a_cause_is_one_new_file_and_its_entry(tmp_path):
    house = House(tmp_path)
    house.follow("harness/profiles/causes/precision.py")
    done = house.python("-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    answer, _, table = done.stdout.partition(",function,")
    assert "`step` was traced once more: precision of `jax_default_matmul_precision` was" in answer
    assert "(JH070)" in answer
    assert "precision,jax_default_matmul_precision,1," in table
    page = (house.folder / "page.html").read_text(encoding="utf-8")
    assert "was highest, now default." in str(embedded(page))


def test_every_cause_looks_where_builds_are_compared_and_has_a_remedy_that_exists():
    assert {place for kind in KINDS.values() for place in kind.looks} <= set(PLACES)
    codes = {kind.remedy for kind in KINDS.values() if isinstance(kind.remedy, str)}
    assert codes <= {"", *REMEDIES}


def test_every_form_that_a_cause_can_have_has_words():
    without = {kind for kind in KINDS if (kind, "") not in CLAUSES}
    assert without == set()
    assert {form for kind, form in CLAUSES if kind == "pytree"} == set(pytree.Form.__args__)


def test_every_remedy_has_an_identifier_of_its_own_and_words():
    assert REMEDIES.keys() == TEXTS.keys()
    assert len(IDS) == len(REMEDIES)
    assert all(re.fullmatch(r"JH\d{3}", one) for one in IDS)


def test_every_remedy_has_a_row_in_the_page_of_remedies():
    text = (ROOT / "docs" / "remedies.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| JH")]
    assert [row[1].strip() for row in rows] == sorted(IDS)
    assert all(len(row) == 6 and all(map(str.strip, row[1:5])) for row in rows)
