"""A program is run unchanged, whatever it does, and each of its processes says it was there."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time

import jax
import pytest
from click.testing import CliRunner

from harness.cli.profile import app
from harness.cli.profile import told as telling
from harness.errors import UsageError
from harness.profiles.answer.summary import summary
from harness.profiles.recorded import read
from harness.watch import programs
from tests.watch.programs import COMMAND, environment, followed, how, profiled

ECHO = """
import os, sys
sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1] + repr(sys.argv[1:]).encode())
sys.stderr.write("its own")
sys.exit(7)
"""


def test_input_output_arguments_and_exit_code_are_the_programs_own(tmp_path):
    (tmp_path / "echo.py").write_text(ECHO)
    script = str(tmp_path / "echo.py")
    done, profile = profiled(script, "-x", "--", "é", folder=tmp_path / "p", input=b"\xff\x00")
    assert done.returncode == 7
    assert done.stdout == b"\x00\xff" + repr(["-x", "--", "é"]).encode()
    assert done.stderr.startswith(b"its own")
    assert str(tmp_path / "p").encode() in done.stderr
    assert profile.run.command == (sys.executable, script, "-x", "--", "é")
    assert profile.run.exit_code == 7
    assert 0 < profile.run.begin_ns < profile.run.end_ns
    [process] = profile.processes
    assert process.started.pid == profile.run.pid
    assert process.started.argv == profile.run.command
    assert process.ended.why == "exit"
    assert process.ended.failures == ()
    between = (profile.run.begin_ns, process.started.clock_ns, process.ended.at_ns)
    assert sorted(between) == list(between)


@pytest.mark.parametrize(
    "words",
    [
        ["-X", "dev", "-u", "-W", "error", "-c", "import sys; sys.exit(3)"],
        ["python", "-c", "raise SystemExit(3)"],
        ["-m", "own.program"],
        ["sh", "-c", "python -c 'import sys; sys.exit(3)'"],
    ],
    ids=["flags", "command", "module", "shell"],
)
def test_it_is_given_as_one_would_to_a_shell(words, tmp_path, monkeypatch):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "program.py").write_text("import sys; sys.exit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=os.pathsep)
    ran = programs.run_profiled(programs.command_of(words, ""), programs.new_folder(None), 25)
    assert (ran.code, ran.processes) == (3, 1)
    assert ran.folder.parent == tmp_path
    [process] = read(ran.folder).processes
    assert process.ended.why == "exit"


def test_a_program_on_standard_input_has_no_file(tmp_path):
    done, profile = profiled("python", "-", folder=tmp_path / "p", input=b"print(__name__, 1)")
    assert (done.returncode, done.stdout) == (0, b"__main__ 1\n")
    assert len(profile.processes) == 1


ENDINGS = {
    "os._exit": ("import os; os._exit(5)", 5, True),
    "a raise": ("raise KeyError", 1, True),
    "sys.exit in a thread": (
        "import sys, threading; threading.Thread(target=sys.exit, args=(4,)).start()",
        0,
        True,
    ),
    "a daemon thread": (
        "import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True)"
        ".start()",
        0,
        True,
    ),
    "a kill": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", 128 + 9, False),
    "an abort": ("import os; os.abort()", 128 + 6, False),
    "no directory": ("import os; os.mkdir('d'); os.chdir('d'); os.rmdir('../d')", 0, True),
    "no descriptor": ("import os; os.closerange(0, 4096)", 0, True),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_however_it_ends_what_is_known_says_so(ending, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, exit_code, in_good_order = ENDINGS[ending]
    found, profile = followed(code, programs.new_folder(tmp_path / "p"))
    assert found == exit_code
    [process] = profile.processes
    assert (process.ended is not None) == in_good_order


def test_a_program_that_runs_its_exit_handlers_itself_goes_on(tmp_path):
    code = """
import atexit, jax
atexit.register(print, "handled")
jax.jit(lambda x: x + 1)(1.0)
atexit._run_exitfuncs()
jax.jit(lambda x: x + 2)(1.0)
"""
    _, profile = followed(code, programs.new_folder(tmp_path / "p"))
    [process] = profile.processes
    assert process.ended.why == "exit"
    assert [built.function.name for built in profile.builds] == ["<lambda>"] * 2


def test_a_file_of_the_programs_under_our_number_is_left_alone(tmp_path):
    code = """
import os, sys
os.closerange(3, 4096)
held = [os.open(sys.argv[1], os.O_RDWR | os.O_CREAT) for _ in range(900)]
"""
    other = tmp_path / "other"
    _, profile = followed(code, programs.new_folder(tmp_path / "p"), str(other))
    assert other.read_bytes() == b""
    [process] = profile.processes
    assert process.ended is not None


CHILDREN = """
import multiprocessing, os, subprocess, sys

def work(number):
    return number

if __name__ == "__main__":
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    subprocess.run([sys.executable, "-c", "pass"], check=True, preexec_fn=os.getpid)
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
    for method in ("fork", "spawn"):
        process = multiprocessing.get_context(method).Process(target=work, args=(1,))
        process.start()
        process.join()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "pass"])
    os.wait()
    try:
        os.execv("/no/such/program", ["it"])
    except OSError:
        os.execvp(sys.executable, [sys.executable, "-c", "import os; os._exit(6)"])
"""


def test_processes_that_it_starts_forks_and_becomes_are_followed(tmp_path):
    (tmp_path / "children.py").write_text(CHILDREN)
    folder = programs.new_folder(tmp_path / "p")
    ran = programs.run_profiled([sys.executable, str(tmp_path / "children.py")], folder, 25)
    assert ran.code == 6
    profile = read(folder)
    # Two children, spawn's worker and its tracker of resources, what the fork became, what the
    # first became, and the first itself; `python -I` is followed by nobody.
    assert how(profile) == ["command"] * 7 + ["fork"] * 2
    first, last = [
        process for process in profile.processes if process.started.pid == profile.run.pid
    ]
    assert first.started.process_ns == pytest.approx(last.started.process_ns, abs=2e7)
    assert first.ended.why == "exec"
    assert last.ended.why == "exit"
    whys = sorted(p.ended.why for p in profile.processes if p.started.how == "fork")
    assert whys == ["exec", "exit"]


def test_where_nothing_could_be_followed_it_is_said(tmp_path):
    done = CliRunner().invoke(app, ["-o", str(tmp_path / "p"), "--", "-I", "-c", "print(1)"])
    assert done.exit_code == 4
    assert "ignores PYTHONPATH (-I, -E, -S)" in done.stderr


WAITING = """
import os, signal, sys, time
def told(number, frame):
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        sys.exit(9)
for name in ("SIGINT", "SIGHUP", "SIGUSR1", "SIGTERM"):
    signal.signal(getattr(signal, name), told)
print(os.getpid(), flush=True)
while True:
    time.sleep(0.01)
"""


def test_signals_reach_the_program_and_it_decides(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "-o", str(tmp_path / "p"), "--", "-c", WAITING],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,  # as a shell does it
    )
    with process, _killed_at_last(process):
        pid = int(process.stdout.readline())
        for name in ("SIGUSR1", "SIGHUP", "SIGINT"):
            process.send_signal(getattr(signal, name))
            assert process.stdout.readline() == name + "\n"
        process.send_signal(signal.SIGTSTP)
        assert _state(process.pid) == _state(pid) == "T"
        process.send_signal(signal.SIGCONT)
        process.terminate()
        assert process.stdout.readline() == "SIGTERM\n"
    assert process.returncode == 9
    [found] = read(tmp_path / "p").processes
    assert found.ended.why == "exit"


@contextlib.contextmanager
def _killed_at_last(process):
    try:
        yield
        process.wait(30)
    finally:
        process.kill()


def _state(pid):
    for _ in range(500):
        with open(f"/proc/{pid}/stat") as stat:
            state = stat.read().rpartition(")")[2].split()[0]
        if state == "T":
            break
        time.sleep(0.01)
    return state


def test_an_exit_by_a_signal_is_128_and_its_number(tmp_path):
    killed = ["-c", "import os; os.kill(os.getpid(), 15)"]
    done = CliRunner().invoke(app, ["-o", str(tmp_path / "p"), "--", *killed])
    assert done.exit_code == 128 + 15
    assert "The program was ended by SIGTERM." in done.stderr
    profile = read(tmp_path / "p")
    assert profile.run.exit_code == -15
    assert profile.processes[0].ended is None


def test_the_exit_code_is_kept_where_nobody_reads_what_is_said(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "-o", str(tmp_path / "p"), "--", "-c", "input(); raise SystemExit(8)"],
        env=environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stderr.close()
    process.communicate(b"\n")
    assert process.returncode == 8


def test_a_folder_that_cannot_be_used_is_refused_before_the_program_runs(tmp_path, monkeypatch):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for place, text in (
        ("full", "is not empty"),
        ("full/file", "cannot be made"),
        ("/proc/nowhere", "cannot be made"),
    ):
        with pytest.raises(UsageError, match=text):
            programs.new_folder(tmp_path / place)
    ran = tmp_path / "ran"
    words = ["-o", str(tmp_path / "full"), "--", "-c", f"open({str(ran)!r}, 'w')"]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, UsageError)
    assert "is not empty" in str(done.exception)
    assert not ran.exists()
    monkeypatch.chdir("/proc")
    with pytest.raises(UsageError, match="Give another folder with -o"):
        programs.new_folder(None)


def test_two_profiles_of_one_second_get_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = {programs.new_folder(None) for _ in range(3)}
    assert len(folders) == 3
    assert all(folder.name.startswith("profile-20") for folder in folders)


def test_what_cannot_be_started_is_one_clear_error_and_leaves_no_folder(tmp_path):
    with pytest.raises(UsageError, match="'no-such-program' is not on PATH"):
        programs.command_of(["no-such-program"], "")
    with pytest.raises(UsageError, match="Nothing to run"):
        programs.command_of([], "")
    folder = programs.new_folder(tmp_path / "p")
    with pytest.raises(UsageError, match="cannot be started"):
        programs.run_profiled([str(tmp_path)], folder, 25)
    assert not folder.exists()


def test_a_profile_that_cannot_be_judged_does_not_hide_the_programs_code(tmp_path, capfd):
    code, _ = followed("raise SystemExit(5)", programs.new_folder(tmp_path / "p"))
    (broken,) = (tmp_path / "p").glob("*.jsonl")
    broken.write_text("what is this\n")
    assert telling.tell(programs.Ran(tmp_path / "p", code, 1, False), None, None) == 5
    told = capfd.readouterr().err
    assert "holds no profile" in told
    assert "How the program ended could not be written" in told


def test_jax_that_is_not_among_the_installed_packages_is_jax_all_the_same(tmp_path):
    """As in an editable checkout, behind a link, or in a tree of a build system."""
    import jax
    import jaxlib

    for package in (jax, jaxlib):
        place = os.path.dirname(package.__file__)
        (tmp_path / "tree" / package.__name__).parent.mkdir(exist_ok=True)
        (tmp_path / "tree" / package.__name__).symlink_to(place)
    script = tmp_path / "train.py"
    script.write_text(
        "import sys; sys.path.insert(0, 'tree')\n"
        "import jax, jax.numpy as jnp\n"
        "assert 'tree' in jax.__file__\n"
        "step = jax.jit(lambda x: x + 1)\n"
        "step(jnp.arange(3))\n"
    )
    _, profile = profiled(str(script), folder=tmp_path / "p", cwd=tmp_path)
    assert {built.function.origin for built in profile.builds} == {"program", "jax"}
    assert {built.call_site.file for built in profile.builds} == {str(script)}


@pytest.mark.parametrize("kept", [True, False])
def test_modules_that_are_compiled_anew_at_each_start_are_told(kept, tmp_path):
    (tmp_path / "own.py").write_text("import jax")
    variables = [f"PYTHONPYCACHEPREFIX={tmp_path / 'bytecode'}", "PYTHONDONTWRITEBYTECODE=1"]
    words = ["env", *variables[kept:], sys.executable, str(tmp_path / "own.py")]
    ran = programs.run_profiled(
        programs.command_of(words, ""), programs.new_folder(tmp_path / "p"), 0
    )
    said = " ".join(" ".join(summary(read(ran.folder), lines=None)).split())
    site = os.path.dirname(os.path.dirname(jax.__file__))
    assert (f"python -m compileall -q {site}" in said) is not kept


EMBEDDED = """
#include <Python.h>
int main(void) {
    PyConfig config;
    CONFIGURE(&config);
    Py_InitializeFromConfig(&config);
    int failed = PyRun_SimpleString(
        "import sys; sys.path.append('SITE')\\n"
        "import jax, jax.numpy as jnp\\n"
        "jax.jit(lambda x: x + 1)(jnp.arange(3))\\n");
    return Py_FinalizeEx() < 0 || failed;
}
"""


@pytest.mark.skipif(
    shutil.which("cc") is None or not sysconfig.get_config_var("Py_ENABLE_SHARED"),
    reason="needs a C compiler, and Python as a shared library",
)
@pytest.mark.parametrize(("how", "code"), [("Python", 0), ("Isolated", 4)])
def test_an_interpreter_in_another_program_is_followed_unless_it_is_isolated(how, code, tmp_path):
    source, program = tmp_path / "embedded.c", tmp_path / "embedded"
    site = os.path.dirname(os.path.dirname(jax.__file__))
    text = EMBEDDED.replace("CONFIGURE", f"PyConfig_Init{how}Config").replace("SITE", site)
    source.write_text(text, encoding="utf-8")
    library = sysconfig.get_config_var("LIBDIR")
    version = sysconfig.get_config_var("LDVERSION")
    words = ["cc", str(source), "-o", str(program), "-I", sysconfig.get_path("include")]
    words += ["-L", library, f"-Wl,-rpath,{library}", f"-lpython{version}"]
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    words = [*COMMAND, "-o", tmp_path / "p", "--", "env", f"PYTHONHOME={sys.base_prefix}", program]
    done = subprocess.run(words, env=environment(), capture_output=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr
    assert (b"Nothing was recorded" in done.stderr) is (code == 4)
    if code == 0:
        assert "<lambda>" in {built.function.name for built in read(tmp_path / "p").builds}
