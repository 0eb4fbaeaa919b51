"""The one child runner: start, feed, hear, watch, time out, end."""

import os
import secrets
import signal
import subprocess
import sys
import time

import psutil
import pytest

from harness.measure import containment
from harness.measure.child import Child, ChildError, ChildTimeout
from tests.started import TOKEN, of

SERVE = "from harness.measure import channel; channel.serve(lambda job: {})"


def python(script, *arguments):
    return [sys.executable, "-c", script, *arguments]


def wait_for(condition, limit_s=20.0):
    deadline = time.monotonic() + limit_s
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds  # asked once: between two processes a count comes and goes


def test_a_job_goes_in_and_an_answer_comes_out_without_what_is_printed():
    with Child(python("print('[1]')\n" + SERVE.format("[job, channel.spawned_ns()]"))) as child:
        child.send(b'{"one": 1}')
        assert child.answer(60.0) == [{"one": 1}, child.spawned_ns]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["-c", SERVE.format("1 / 0")],
            r"python.* ended with exit code 1 and no answer: .*ZeroDivisionError: division by zero",
        ),
        (["-m", "no_such_module"], r"^no_such_module ended with exit code 1"),
        (
            ["-c", "import os; os.kill(os.getpid(), 9)"],
            "ended with killed by SIGKILL and no answer: it printed no",
        ),
    ],
    ids=["fails", "module", "killed"],
)
def test_a_child_that_sends_no_answer_is_an_error_with_its_last_words(arguments, said):
    with Child([sys.executable, *arguments]) as child:
        child.send(b"null")
        with pytest.raises(ChildError, match=said):
            child.answer(60.0)


def test_a_child_that_takes_too_long_is_stopped():
    said = r"had not finished after 0.5 s and was stopped"
    with Child(python("import time; time.sleep(600)")) as child:
        with pytest.raises(ChildTimeout, match=said):
            child.answer(0.5)
        assert child.is_running
    assert child.code == -signal.SIGKILL
    assert not psutil.pid_exists(child.pid)


def test_a_grandchild_that_holds_the_output_open_holds_nobody_up():
    with Child(python("import subprocess; subprocess.Popen(['sleep', '600'])")) as child:
        assert child.wait() == 0


def test_a_command_that_reads_its_input_finds_it_empty():
    with Child(python("import sys; assert sys.stdin.read() == ''")) as child:
        assert child.wait() == 0, child.output


SPREADS = """
import os, subprocess, sys, time
sleeping = [sys.executable, "-c", "import time; time.sleep(600)"]
for _ in range(2):
    subprocess.Popen(sleeping, start_new_session=True)
between = "import subprocess; subprocess.Popen({})".format(sleeping)
subprocess.call([sys.executable, "-c", between])  # an orphan
open("/proc/self/comm", "w").write("has spread")
"""
CALLS = """
from harness.measure.child import Child
with Child({command}) as child:
    child.send(b"null")
    [*child.lines()]
"""


def spreads(then="time.sleep(600)"):
    """A command that starts processes in sessions of their own."""
    return python(SPREADS + then)


def called(token, command):
    """Start one who has a child run a command."""
    script = CALLS.format(command=command)
    there = {**os.environ, TOKEN: token}
    return subprocess.Popen(python(script), env=there, stderr=subprocess.DEVNULL)


def are_all_there(token, count):
    """Whether the command has started all, and there are so many; they come and go before."""
    found = of(token)
    return len(found) == count and any(one.name() == "has spread" for one in found)


def test_a_child_ends_with_its_parent():
    token = secrets.token_hex()
    body = "(open('/proc/self/comm', 'w').write('has spread'), __import__('time').sleep(600))"
    with called(token, python(SERVE.format(body))) as running:
        assert wait_for(lambda: are_all_there(token, 2), 60)
        running.kill()
    assert wait_for(lambda: of(token) == [])


@pytest.mark.parametrize("then", ["", "time.sleep(600)"], ids=["ends", "goes on"])
def test_nothing_is_left_in_whatever_session_it_is(then):
    token = secrets.token_hex()
    with Child(spreads(then), {**os.environ, TOKEN: token}) as child:
        if then:
            assert wait_for(lambda: are_all_there(token, 4), 60)
        else:
            assert child.wait() == 0
            assert len(of(token)) == 3
    assert of(token) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_command_that_dies_with_its_caller_does():
    script = """
import subprocess
from harness.measure.containment import dying_with_caller
subprocess.run({command}, preexec_fn=dying_with_caller())
"""
    token = secrets.token_hex()
    spread = "open('/proc/self/comm', 'w').write('has spread'); import time; time.sleep(600)"
    there = {**os.environ, TOKEN: token}
    with subprocess.Popen(python(script.format(command=python(spread))), env=there) as running:
        were_there = wait_for(lambda: are_all_there(token, 2), 60)
        running.kill()
    assert were_there
    assert wait_for(lambda: of(token) == [])


def test_a_command_that_is_not_there_is_an_error_and_leaves_nothing_open():
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(FileNotFoundError):
        Child(["no-such-program"])
    assert len(os.listdir("/dev/fd")) == before


def test_a_signal_that_comes_while_a_child_starts_leaves_no_child(monkeypatch):
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            started.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        Child(python("import time; time.sleep(600)"))
    assert len(started) == 1
    assert not psutil.pid_exists(started[0])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_a_killed_command_has_left_ends_with_the_next_and_no_other_does():
    token = secrets.token_hex()
    with called(token, spreads()) as running:
        were_there = wait_for(lambda: are_all_there(token, 5), 60)
        containment.end_left_over()
        are_there = len(of(token))
        running.kill()
    assert were_there
    assert are_there == 5, "its caller is there"
    # of any command that is run beside this test, the next may be the first
    next_one = "from harness.measure import containment; containment.end_left_over()"
    subprocess.run(python(next_one), check=True)
    assert of(token) == []


def test_what_a_left_over_process_starts_spares_its_own():
    """Who was started by one that is gone may measure: it is in use."""
    script = """
import subprocess
from harness.measure import containment
with subprocess.Popen(["sleep", "600"]) as own:
    print(containment.end_left_over(), own.poll())
    own.kill()
"""
    mark = containment.new_mark().split(":")
    mark[0] = "4194305"  # no process can have that number
    there = {**os.environ, **containment.marked(":".join(mark))}

    def done():
        ran = subprocess.run(python(script), env=there, capture_output=True, text=True)
        return ran.returncode != -signal.SIGKILL and ran  # by others: to them it is left over

    assert wait_for(done).stdout == "0 None\n"


def test_temporary_files_of_a_child_go_with_it():
    script = """
import tempfile
from harness.measure import channel
channel.send(tempfile.mkdtemp().encode())
__import__("os").kill(__import__("os").getpid(), 9)
"""
    with Child(python(script)) as child:
        (made,) = child.lines()
        assert os.path.isdir(made)
    assert not os.path.exists(made)
    assert not os.path.exists(os.path.dirname(made))
