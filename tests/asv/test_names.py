"""Names and values that asv, or a table, could take for something else."""

import pytest

import harness
from harness.output.tables import stage_table
from tests.asv.project import Project
from tests.asv.test_plain import harness_command

STEPS = """
import jax.numpy as jnp
from harness import Workload, spec


class Work(Workload):
    process_stages = False

    def inputs(self):
        return spec((8,))

    @staticmethod
    def function(x):
        return jnp.tanh(x)


class Setup(Work):
    pass


class Solve(Work):
    pass


def track_plain():
    return 1
"""
MORE = STEPS.replace("class Setup(Work)", "SETUP = {'tolerance': 1e-3}\n\n\nclass Relax(Work)")
TEARDOWN = """
def setup_cache():
    raise RuntimeError("of no workload")


class Own(Work):
    teardown = None
    setUp = 3
"""


def test_asv_calls_no_workload_and_none_of_its_constants_as_setup_or_teardown(tmp_path):
    plain = STEPS.partition("def track_plain")[0]
    project = Project(
        tmp_path,
        {"steps": STEPS, "more": MORE.partition("def track_plain")[0], "down": plain + TEARDOWN},
    )
    project.run("--quick", HARNESS_FIRST_CALLS="0")
    names = {name for name in project.names() if name.endswith(".track_trace")}
    own = {name.removesuffix(".track_trace") for name in names}
    assert own == {
        *("steps.Work", "steps.Setup", "steps.Solve", "more.Work", "more.Relax", "more.Solve"),
        *("down.Work", "down.Setup", "down.Solve", "down.Own"),
    }
    for name in names:
        (value,) = project.result(name)["result"]
        assert value > 0, name
    assert project.result("steps.track_plain")["result"] == [1]


AXES = """
VALUES = [4, "4", None, "None", 1.5, "1.5", 1, True, "True"]


def track_step(order):
    return 1.0 + VALUES.index(order) if order is not True else 8.0


track_step.params = VALUES
track_step.param_names = ["order"]
track_step.unit = "seconds"
"""
OWN = """
from harness import Workload, spec


class Own(Workload):
    sweep = {"order": [1, "1", 1.5, "1.5", True, "True"]}

    def inputs(self, order):
        return spec((8,))

    @staticmethod
    def function(x, order):
        return x * float(order == "1")

    static = ("order",)
"""


@pytest.mark.nightly
def test_values_that_print_alike_keep_their_rows(tmp_path):
    project = Project(tmp_path, {"axes": AXES, "own": OWN})
    project.run("--quick", HARNESS_FIRST_CALLS="0")
    frame = harness.load(project.results, all=True)
    shown = stage_table(frame).groupby("workload", sort=False)["axes"].agg(list)
    texts = ["4", "'4'", "'None'", "1.5", "'1.5'", "1", "True", "'True'"]
    axes = shown["axes.track_step"]
    assert {*axes} >= {f"order={one}" for one in texts}
    assert len(axes) == len({*axes}) == 9  # and None
    own = ("1", "'1'", *texts[3:5], *texts[6:])
    assert sorted(shown["own.Own"]) == sorted(f"order={one}" for one in own)
    chosen = harness_command(project, "show", "--all", "--case", "order='4'").stdout
    assert "order='4'" in chosen
    assert "order=4" not in chosen
