"""Run commands of `harness`, a line each, without what Python for Windows lacks.

Prints a list of exit codes and texts as JSON.

Modules, functions, flags and signals that the standard library documents as Unix's are taken away
once the libraries that have another way on Windows are loaded. Paths and processes stay those of
this system.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import multiprocessing
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys

import altair
import click
import filelock
import IPython
import jax
import jinja2
import pandas as pd
import psutil

STANDARD = asyncio, multiprocessing, subprocess
LIBRARIES = altair, click, filelock, IPython, jax, jinja2, pd, psutil
MODULES = "fcntl grp posix pty pwd readline resource syslog termios tty"
OWN = {
    os: """
        O_CLOEXEC O_DIRECTORY O_DSYNC O_NOCTTY O_NOFOLLOW O_NONBLOCK O_SYNC SCHED_IDLE SCHED_OTHER
        WNOHANG chown environb fchdir fchmod fchown fdatasync fork forkpty fstatvfs getegid geteuid
        getgid getgroups getloadavg getpgid getpgrp getpriority getsid getuid getxattr killpg lchown
        listxattr lockf mkfifo mknod nice openpty pathconf pidfd_open pipe2 posix_fadvise
        posix_fallocate pread preadv pwrite pwritev register_at_fork removexattr
        sched_getaffinity sched_param sched_setaffinity sched_setscheduler sched_yield sendfile
        setgid setpgid setpriority setsid setuid setxattr statvfs sync sysconf sysconf_names uname
        wait wait3 wait4 waitid
    """,
    signal: """
        SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2
        SIGWINCH alarm pause pidfd_send_signal pthread_kill pthread_sigmask setitimer siginterrupt
        sigwait
    """,
    socket: "AF_UNIX",
    select: "poll epoll",
}


def run(words: list[str]) -> tuple[int, str]:
    """Run a command; return its exit code and what it said."""
    sys.argv = ["harness", *words]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            runpy.run_module("harness", run_name="__main__")
        except SystemExit as ended:
            return int(ended.code or 0), said.getvalue()
    return 0, said.getvalue()


if __name__ == "__main__":
    for name in MODULES.split():
        sys.modules[name] = None
    for module, names in OWN.items():
        for name in names.split():
            if hasattr(module, name):
                delattr(module, name)
    # As it is where `os.open` knows no folders; Python 3.14 has chosen by then.
    shutil._use_fd_functions = False
    shutil._rmtree_impl = shutil._rmtree_unsafe
    print(json.dumps([run(line.split()) for line in sys.stdin]))
