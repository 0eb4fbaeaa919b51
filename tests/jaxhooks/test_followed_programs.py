"""A program is run unchanged, whatever it does, and each of its processes says it was there."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import jax
import jaxlib
import pytest

from harness.cli.profile import answer as telling
from harness.errors import UsageError
from harness.jaxhooks import programs
from harness.output.profile import summary
from harness.profiles.recorded import read
from tests.jaxhooks.programs import COMMAND, environment, followed, how, profiled

ECHO = """
import os, sys
sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1] + repr(sys.argv[1:]).encode())
sys.stderr.write("its own")
sys.exit(7)
"""


def test_input_output_arguments_and_exit_code_are_the_programs_own(tmp_path):
    script, folder = tmp_path / "echo.py", tmp_path / "p"
    script.write_text(ECHO)
    words = (str(script), "-x", "--", "é")
    done, profile = profiled(*words, folder=folder, input=b"\xff\x00")
    assert done.returncode == profile.run.exit_code == 7
    assert done.stdout == b"\x00\xff" + repr(["-x", "--", "é"]).encode()
    assert done.stderr.startswith(b"its own")
    assert str(folder).encode() in done.stderr
    assert profile.run.command == (sys.executable, *words)
    [process] = profile.processes
    assert process.started.pid == profile.run.pid
    assert process.started.argv == profile.run.command
    assert process.ended.why == "exit"
    assert process.ended.failures == ()
    run, started = profile.run, process.started.clock_ns
    assert 0 < run.begin_ns < started < process.ended.at_ns < run.end_ns


@pytest.mark.parametrize(
    "words",
    [
        ["-X", "dev", "-u", "-W", "error", "-c", "import sys; sys.exit(3)"],
        ["python", "-c", "raise SystemExit(3)"],
        ["-m", "own.program"],
        ["sh", "-c", "python -c 'import sys; sys.exit(3)'"],
    ],
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


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("os._exit(5)", 5),
        ("raise KeyError", 1),
        ("threading.Thread(target=sys.exit, args=(4,)).start()", 0),
        ("threading.Thread(target=time.sleep, args=(9,), daemon=True).start()", 0),
        ("os.abort()", 128 + 6),
        ("os.mkdir('d'); os.chdir('d'); os.rmdir('../d')", 0),
        ("os.closerange(0, 4096)", 0),
    ],
)
def test_however_it_ends_what_is_known_says_so(text, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = f"import os, sys, threading, time; {text}"
    found, profile = followed(tmp_path / "p", "-c", text)
    assert found == code
    [process] = profile.processes
    assert (process.ended is not None) == (code < 128)


def test_a_file_of_the_programs_under_our_number_is_left_alone(tmp_path):
    code = """
import os, sys
os.closerange(3, 4096)
held = [os.open(sys.argv[1], os.O_RDWR | os.O_CREAT) for _ in range(900)]
"""
    other = tmp_path / "other"
    _, profile = followed(tmp_path / "p", "-c", code, other)
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
    code, profile = followed(tmp_path / "p", tmp_path / "children.py")
    assert code == 6
    # Two children, spawn's worker and its tracker of resources, what the fork became, what the
    # first became, and the first itself; `python -I` is followed by nobody.
    assert how(profile) == ["command"] * 7 + ["fork"] * 2
    first, last = [one for one in profile.processes if one.started.pid == profile.run.pid]
    assert first.started.process_ns == pytest.approx(last.started.process_ns, abs=2e7)
    assert first.ended.why == "exec"
    assert last.ended.why == "exit"
    whys = sorted(p.ended.why for p in profile.processes if p.started.how == "fork")
    assert whys == ["exec", "exit"]


def test_where_nothing_could_be_followed_it_is_said(tmp_path, command):
    code, _, said = command("profile", "-o", tmp_path / "p", "--", "-I", "-c", "print(1)")
    assert code == 4
    assert "ignores PYTHONPATH (-I, -E, -S)" in said


WAITING = """
import os, signal, sys, time
def told(number, frame):
    os.write(1, f"{signal.Signals(number).name}\\n".encode())  # print may be at it already
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
    with process, killed_at_last(process):
        pid = int(process.stdout.readline())
        for name in ("SIGUSR1", "SIGHUP", "SIGINT"):
            process.send_signal(getattr(signal, name))
            assert process.stdout.readline() == name + "\n"
        process.send_signal(signal.SIGTSTP)
        for one in (process.pid, pid):
            while Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                time.sleep(0.01)
        process.send_signal(signal.SIGCONT)
        process.terminate()
        assert process.stdout.readline() == "SIGTERM\n"
    assert process.returncode == 9
    [found] = read(tmp_path / "p").processes
    assert found.ended.why == "exit"


@contextlib.contextmanager
def killed_at_last(process):
    try:
        yield
        process.wait(30)
    finally:
        process.kill()


def test_an_exit_by_a_signal_is_128_and_its_number(tmp_path, command):
    killed = ("-c", "import os; os.kill(os.getpid(), 15)")
    code, _, said = command("profile", "-o", tmp_path / "p", "--", *killed)
    assert code == 128 + 15
    assert "The program was ended by SIGTERM." in said
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


def test_a_folder_that_cannot_be_used_is_refused_before_the_program_runs(
    tmp_path, monkeypatch, command
):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    ran = tmp_path / "ran"
    places = {"full": "is not empty", "full/file": "cannot be made", "/proc/no": "cannot be made"}
    for place, text in places.items():
        given = ("-o", tmp_path / place, "--", "-c", f"open({str(ran)!r}, 'w')")
        code, _, said = command("profile", *given)
        assert (code, text in said) == (2, True)
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
    with pytest.raises(UsageError, match="Nothing to run"):
        programs.command_of([], "")
    folder = programs.new_folder(tmp_path / "p")
    with pytest.raises(UsageError, match="cannot be started"):
        programs.run_profiled([str(tmp_path)], folder, 25)
    assert not folder.exists()


def test_a_profile_that_cannot_be_judged_does_not_hide_the_programs_code(tmp_path, capfd):
    code, _ = followed(tmp_path / "p", "-c", "raise SystemExit(5)")
    (broken,) = (tmp_path / "p").glob("*.jsonl")
    broken.write_text("what is this\n")
    assert telling.tell(programs.Ran(tmp_path / "p", code, 1, False), None, None, None) == 5
    told = capfd.readouterr().err
    assert "holds no profile" in told
    assert "How the program ended could not be written" in told


@pytest.mark.nightly
def test_jax_that_is_not_among_the_installed_packages_is_jax_all_the_same(tmp_path, monkeypatch):
    """As in an editable checkout, behind a link, or in a tree of a build system; without bytecode.

    Of JAX's modules those at the top alone are compiled anew, which is quick.
    """
    tree, script = tmp_path / "tree", tmp_path / "train.py"
    (tree / "jax").mkdir(parents=True)
    for part in Path(jax.__file__).parent.iterdir():
        if part.name != "__pycache__":
            (tree / "jax" / part.name).symlink_to(part)
    (tree / "jaxlib").symlink_to(Path(jaxlib.__file__).parent)
    script.write_text(
        "import sys; sys.path.insert(0, 'tree')\n"
        "import jax, jax.numpy as jnp\n"
        "assert 'tree' in jax.__file__\n"
        "jax.jit(lambda x: x + 1)(jnp.arange(3))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    _, profile = followed(tmp_path / "p", script)
    assert {built.function.origin for built in profile.builds} == {"program", "jax"}
    assert {built.call_site.file for built in profile.builds} == {str(script)}
    said = " ".join(" ".join(summary(profile, lines=None)).split())
    assert "Python compiles JAX's modules at each start: PYTHONDONTWRITEBYTECODE is" in said
    assert f"Once: python -m compileall -q {tree}" in said


EMBEDDED = """
#include <Python.h>
int main(int count, char **words) {
    PyConfig config;
    count > 1 ? PyConfig_InitIsolatedConfig(&config) : PyConfig_InitPythonConfig(&config);
    Py_InitializeFromConfig(&config);
    int failed = count == 1 && PyRun_SimpleString(
        "import sys; sys.path.append('SITE')\\n"
        "import jax, jax.numpy as jnp\\n"
        "jax.jit(lambda x: x + 1)(jnp.arange(3))\\n");
    return Py_FinalizeEx() < 0 || failed;
}
"""


@pytest.mark.nightly
@pytest.mark.skipif(
    shutil.which("cc") is None or not sysconfig.get_config_var("Py_ENABLE_SHARED"),
    reason="needs a C compiler, and Python as a shared library",
)
def test_an_interpreter_in_another_program_is_followed_unless_it_is_isolated(tmp_path, command):
    source, program = tmp_path / "embedded.c", tmp_path / "embedded"
    site = os.path.dirname(os.path.dirname(jax.__file__))
    source.write_text(EMBEDDED.replace("SITE", site), encoding="utf-8")
    library = sysconfig.get_config_var("LIBDIR")
    version = sysconfig.get_config_var("LDVERSION")
    words = ["cc", str(source), "-o", str(program), "-I", sysconfig.get_path("include")]
    words += ["-L", library, f"-Wl,-rpath,{library}", f"-lpython{version}"]
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    words = ["--", "env", f"PYTHONHOME={sys.base_prefix}", program]
    code, _, said = command("profile", "-o", tmp_path / "p", *words)
    assert (code, "Nothing was recorded" in said) == (0, False)
    assert "<lambda>" in {built.function.name for built in read(tmp_path / "p").builds}
    code, _, said = command("profile", "-o", tmp_path / "q", *words, "isolated")
    assert (code, "Nothing was recorded" in said) == (4, True)
