"""A cause is added by one new file and its entry, and one that lacks something says so at once."""

from __future__ import annotations

import pytest

from harness.profiles.causes.cause import ChangeKind
from tests.added import House
from tests.report.pages import embedded

PROGRAM = """
import sys
from harness.profiles.decision.decide import decide
from harness.profiles.answer.summary import summary
from harness.profiles.model import Process
from harness.profiles.recorded import Recorded
from harness.profiles.tables.frames import frame
from harness.report.profile.page import write
from harness.watch import events

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
    assert "`step` was traced once more: products of matrices were highest, now default" in answer
    assert "Set it once." in answer
    assert "precision,precision,1," in table
    page = (house.folder / "page.html").read_text(encoding="utf-8")
    assert "Products of matrices were highest, now default." in str(embedded(page))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"looks": {}}, "'x' looks at nothing; expected some of function, "),
        ({"looks": {"sizes": lambda *_: None}}, "'x' looks at sizes; expected some of function, "),
        ({}, "missing 1 required keyword-only argument: 'looks'"),
    ],
)
def test_a_cause_that_is_never_found_is_refused(given, said):
    with pytest.raises(TypeError, match=said):
        ChangeKind(name="x", sentence="", remedy="", **given)
