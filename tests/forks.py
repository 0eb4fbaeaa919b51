"""Python processes that are forked from one that has made the dear imports already.

Two seconds of a process of the harness go to imports, and the tests start hundreds. While
`forking()` lasts, `subprocess.Popen` has `python -m harness...` forked from a server that has
imported JAX, pandas and SciPy and has woken no back end: a process of its own, with its own
variables, files and JAX, and so are those that it starts in turn. `run` and `Python` have any
program in Python forked, `harness` and `Command` the command line. What depends on how Python
itself starts (variables that count then, another interpreter, another `harness`) is started afresh,
as is everything outside `forking()`. `python forks.py MODULE WORDS` runs a module so for a shell.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib.metadata
import inspect
import itertools
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
import threading
import traceback
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]
ADDRESS = "TESTS_FORK_SERVER"
INSTALLED = Path(sysconfig.get_path("purelib"))
"""The folder of packages, which another folder may hold another one of."""
FREE = (
    *("JAX_", "XLA_FLAGS", "TPU_", "ALLOW_MULTIPLE_LIBTPU_LOAD", "TF_CPP_", "HARNESS_", "PYTEST_"),
    *("NO_COLOR", "TERM"),
    *("ASV_", "GIT_", "PIP_", "HOME", "PATH", "TMPDIR", ADDRESS, "PYTHONPATH", "PYTHONSAFEPATH"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"),
    *("PWD", "OLDPWD", "SHLVL", "_"),  # a shell's own, and those of a job's steps
    *("GITHUB_", "RUNNER_", "EFFORT", "MARK", "NUMBER", "SECONDS_AT_MOST"),
)
"""Variables that may differ from the server's: nobody reads them at import, or `_become` does."""
FLAGS = ("-B", "-P")
"""Python's own options that a forked process heeds."""
ASV = os.path.join("asv", "benchmark.py")
"""The end of the name of what asv starts for each of its steps, in a process group of its own."""

_STATUS = struct.Struct("i")
_Popen = subprocess.Popen


def _fixed(variables):
    """The variables that count when Python starts or a library is imported."""
    return {name: text for name, text in variables.items() if not name.startswith(FREE)}


def _path(variables):
    """The folders of PYTHONPATH."""
    return [each for each in variables.get("PYTHONPATH", "").split(os.pathsep) if each]


def _steers(folder, own):
    """Whether what a process imports from a folder is not what the server has imported."""
    other = folder / "harness"
    if (folder / "sitecustomize.py").exists() or (other.exists() and not other.samefile(own)):
        return True
    inside = folder.iterdir() if folder.is_dir() else ()
    # A folder without it, such as pip's `build`, stands behind a package that is installed.
    named = {n.stem for n in inside if n.suffix == ".py" or (n / "__init__.py").exists()}
    return any(
        (INSTALLED / file).exists() for n in named for file in (f"{n}.py", f"{n}/__init__.py")
    )


class Popen(_Popen):
    """A process that is forked if it is one of the harness or of asv and that can be done."""

    any_program = False
    _connection = None

    def _execute_child(self, *values):
        asked = inspect.signature(super()._execute_child).bind(*values).arguments
        python, *words = list(map(os.fspath, asked["args"])) if not asked["shell"] else [""]
        flags = list(itertools.takewhile(FLAGS.__contains__, words))
        program = words[len(flags) :]
        environment = dict(os.environ if asked["env"] is None else asked["env"])
        folder = os.path.abspath(asked["cwd"] or ".")
        if python != sys.executable or not self._can_be_forked(program, environment, folder):
            super()._execute_child(*values)
            return
        ends = [asked["p2cread"], asked["c2pwrite"], asked["errwrite"]]
        files = {number: number if fd == -1 else fd for number, fd in enumerate(ends)}
        files |= {fd: fd for fd in asked["pass_fds"]}
        order = {
            "flags": flags,
            "program": program,
            "environment": environment,
            "folder": folder,
            "files": list(files),
            "leads": asked["start_new_session"],
            "group": asked["process_group"] == 0 or program[0].endswith(ASV),
        }
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(self._address(environment))
        with tempfile.TemporaryFile() as file:
            file.write(json.dumps(order).encode())
            file.seek(0)
            socket.send_fds(self._connection, [b"!"], [file.fileno(), *files.values()])
            (self.pid,) = _STATUS.unpack(self._connection.recv(_STATUS.size))
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(asked[name] for name in pipes))

    def _address(self, environment):
        return environment.get(ADDRESS)

    def _can_be_forked(self, program, environment, folder):
        address = self._address(environment)
        if not address or not program:
            return False
        home, variables = json.loads(Path(address + ".json").read_text())
        own = Path(home, "harness")
        known = program[0].endswith(ASV) or Path(program[0]).is_relative_to(own)
        if program[0] == "-m":
            known = program[1].partition(".")[0] in ("harness", "asv", "tests", "tools")
        return (
            (known or self.any_program)
            and program[3:4] != ["compared"]  # NumPy is to be told its threads before its import
            and _fixed(environment) == _fixed(variables)
            and not any(_steers(Path(each), own) for each in (folder, *_path(environment)))
        )

    def _try_wait(self, wait_flags):
        if self._connection is None:
            return super()._try_wait(wait_flags)
        if wait_flags & os.WNOHANG and not select.select([self._connection], [], [], 0)[0]:
            return 0, 0
        said = self._connection.recv(_STATUS.size)
        self._connection.close()
        return self.pid, _STATUS.unpack(said)[0] if said else signal.SIGKILL

    def _internal_poll(self, *values, **named):
        if self._connection is None:
            return super()._internal_poll(*values, **named)
        if self.returncode is None and self._waitpid_lock.acquire(False):  # no thread waits
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid == self.pid:
                    self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


class Python(Popen):
    """A process that is forked if it runs Python and that can be done."""

    any_program = True


class Command(Popen):
    """`harness WORDS`, as the user whose variables these are."""

    def __init__(self, *words, cwd=None, environment=None):
        command = [sys.executable, "-m", "harness", *map(str, words)]
        super().__init__(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, **SAID)

    def _address(self, environment):
        return os.environ.get(ADDRESS)


SAID = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def finished(process, timeout=None):
    """Wait for the end of a process; what it printed is text in `stdout` and `stderr`."""
    with process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run(command, *, check=False, timeout=None, **options):
    """Run a program in Python to its end; return what :func:`finished` does."""
    done = finished(Python(command, **SAID, **options), timeout)
    if check and done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stderr}")
    return done


def harness(*words, cwd=None, environment=None):
    """Run `harness WORDS` to its end; return what :func:`finished` does."""
    return finished(Command(*words, cwd=cwd, environment=environment))


def relay(module, *words):
    """Run `python -m MODULE WORDS` with the files of this process; return its exit code."""
    process = Popen([sys.executable, "-m", module, *words])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: process.send_signal(number))
    code = process.wait()
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def server(at=ROOT, **variables):
    """Start a server in a folder, with more variables than the caller's; yield its address."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as held:
        address = f"{folder}/forks"
        variables = {**_fixed(os.environ), **variables}
        Path(address + ".json").write_text(json.dumps([str(at), variables]))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen(64)
            process = _Popen(
                # -P: the folders of tests are called after what they test.
                [sys.executable, "-P", __file__, str(listener.fileno())],
                env=variables,
                cwd=at,
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                start_new_session=True,
            )
        held.enter_context(process)  # at whose end its standard input is closed, and it ends
        yield address


@contextlib.contextmanager
def forking(address):
    """Have the server there fork what can be forked."""
    os.environ[ADDRESS] = address
    subprocess.Popen = Popen
    try:
        yield
    finally:
        subprocess.Popen = _Popen
        del os.environ[ADDRESS]


def _serve(listener):
    """Fork for each that asks, and tell it how that ended; return in the forks, with the order.

    What has ended stays in the kernel's table until who asked has heard of it: its number, which
    may be sent a signal until then, is no other's.
    """
    running, told = {}, {}
    while True:
        asking = [listener, 0, *told, *running]
        readable, _, _ = select.select(asking, [], [])
        if 0 in readable:
            sys.exit()
        for ended in running.keys() & set(readable):
            connection = running.pop(ended)
            told[connection] = ended
            with contextlib.suppress(OSError):  # nobody may be interested any more
                connection.send(_STATUS.pack(_status(ended)))
        for connection in told.keys() & set(readable):  # it is closed at the other end
            ended = told.pop(connection)
            os.waitid(os.P_PIDFD, ended, os.WEXITED)
            os.close(ended)
            connection.close()
        if listener not in readable:
            continue
        connection, _ = listener.accept()
        _, fds, _, _ = socket.recv_fds(connection, 1, 64)
        if not fds:  # who asks was killed before it could say for what
            connection.close()
            continue
        with open(fds[0], "rb") as file:
            order = json.load(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of threads that libraries have started
            pid = os.fork()
        if not pid:
            for other in [listener, *running.values(), *told]:
                other.close()
            for other in [*running, *told.values()]:
                os.close(other)
            if order["leads"]:
                os.setsid()
            if order["group"]:
                os.setpgid(0, 0)
            connection.send(_STATUS.pack(os.getpid()))
            connection.close()
            _place(dict(zip(order["files"], fds[1:], strict=True)))
            return order
        running[os.pidfd_open(pid)] = connection
        for fd in fds[1:]:
            os.close(fd)


def _status(ended):
    """Return how a process ended as `wait` would, and leave it to be waited for."""
    found = os.waitid(os.P_PIDFD, ended, os.WEXITED | os.WNOWAIT)
    return found.si_status << 8 if found.si_code == os.CLD_EXITED else found.si_status


def _place(files):
    """Give open files the numbers that they are to have."""
    above = max(files) + 1
    moved = {number: fcntl.fcntl(fd, fcntl.F_DUPFD, above) for number, fd in files.items()}
    for fd in files.values():
        os.close(fd)
    for number, fd in moved.items():
        os.dup2(fd, number)
        os.close(fd)


def _become(order):
    """Be the process that was ordered: its variables, its folder, and then its program."""
    import jax

    known = _path(os.environ)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    tempfile.tempdir = None
    sys.path[:0] = [each for each in _path(os.environ) if each not in known]
    for name, text in order["environment"].items():
        setting = name.lower()
        if setting in jax.config.values:
            now = jax.config.values[setting]
            kind = str if now is None else type(now)
            value = text.lower() in ("1", "true") if kind is bool else kind(text)
            jax.config.update(setting, value)
    subprocess.Popen = Popen
    how, *arguments = order["program"]
    Path("/proc/self/comm").write_text((arguments[0] if how == "-m" else how)[-15:])
    sys.dont_write_bytecode |= "-B" in order["flags"]
    if not os.environ.get("PYTHONSAFEPATH") and "-P" not in order["flags"]:
        script = "" if how in ("-m", "-c") else os.path.dirname(os.path.abspath(how))
        sys.path.insert(0, script or order["folder"])
    if how == "-m":
        sys.argv[1:] = arguments[1:]
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        sys.argv = [how, *arguments[1:]]
        exec(arguments[0], {"__name__": "__main__"})
    else:
        sys.argv = [how, *arguments]
        runpy.run_path(how, run_name="__main__")


IMPORTED = (
    *("asv.main", "asv_runner.check", "pandas", "rich.table", "scipy.stats"),
    *("jax.export", "jax.numpy", "jax._src.lib.triton", "jaxlib.mlir.dialects.mhlo"),
    *("harness.asv.measure", "harness.asv.suite", "harness.measure.staged"),
    *("harness.cache.ledger", "harness.ir.child", "harness.verdicts.compare"),
    *("harness.cli.output", "harness.cli.init", "harness.cli.run", "harness.cli.cache.ledger"),
)
"""What most processes need and what takes long."""


def _import():
    for name in IMPORTED:
        importlib.import_module(name)
    for plugin in importlib.metadata.entry_points(group="jax_plugins"):
        plugin.load()
    sys.modules.pop("__mp_main__", None)  # multiprocessing's name for this file


def _end(code):
    """End as Python does, without taking apart what the server has built."""
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    if not sys.argv[1].isdecimal():
        sys.exit(relay(*sys.argv[1:]))
    sys.path.insert(0, os.getcwd())  # the harness that lies here, whichever one is installed
    _import()
    sys.path.remove(os.getcwd())
    gc.freeze()  # the forks' collections need not go through it
    ordered = _serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        _become(ordered)
    except SystemExit as asked:
        _end(asked.code)
    except Exception:
        traceback.print_exc()
        _end(1)
    _end(0)
