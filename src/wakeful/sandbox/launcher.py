"""A small process between the runtime and a command, for machines without bubblewrap: it starts, holds and ends it.

It holds the command to Landlock and seccomp where it is told to, adopts every process the command starts, and ends all
of them when the command itself has ended or the runtime has: it watches a pipe whose other end only the runtime has.
It runs in an interpreter of its own that loads the standard library and nothing else, so that it starts quickly.

A command that is not held can kill this process; what it started in the background then stays. Landlock from version 6
on keeps it from doing so.
"""

import ctypes
import errno
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any

from wakeful.sandbox.process_watch import descendants

_PDEATHSIG, _SUBREAPER, _CAPBSET_DROP = 1, 36, 24
_TIOCSCTTY = 0x540E
_CAPSET_VERSION = 0x20080522


def main() -> None:
    plan: dict[str, Any] = json.loads(sys.argv[1])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, as a parent may leave it, it would lose every exit status
    _prctl(_SUBREAPER, 1)
    report_end, told_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(report_end)
        _become(plan, told_end)
    os.close(told_end)
    _release_output()
    with os.fdopen(report_end, "rb") as reports:
        problem = reports.read()
    if problem:
        os.waitpid(child, 0)
        return _say(plan, {"spawn-error": problem.decode(errors="replace")})
    _say(plan, {"child-pid": os.getpid()})
    status = _supervise(child, plan["lifeline"])
    if status is not None:
        _say(plan, {"exit-code": status})
    return None


# --- the command's own process ----------------------------------------------------------------------------------------


def _become(plan: dict[str, Any], told_end: int) -> None:
    """Hold this process to the plan and turn into the command. Never returns."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        _prctl(_PDEATHSIG, signal.SIGKILL)
        os.close(plan["lifeline"])
        os.close(plan["status"])
        if plan["tty"]:
            import fcntl

            os.setsid()
            fcntl.ioctl(0, _TIOCSCTTY, 0)
        else:
            os.setpgid(0, 0)
        os.chdir(plan["cwd"])
        for name, most in plan["rlimits"].items():
            _limit(getattr(resource, name), most)
        if plan["confined"]:
            _confine(plan)
        os.execvpe(plan["argv"][0], plan["argv"], os.environ)
    except BaseException as problem:
        os.write(told_end, f"{type(problem).__name__}: {problem}".encode())
    os._exit(127)


def _confine(plan: dict[str, Any]) -> None:
    from wakeful.sandbox import landlock, seccomp

    _drop_capabilities()
    _prctl(seccomp.PR_SET_NO_NEW_PRIVS, 1)
    network = plan["network"] == "full"
    landlock.restrict(plan["read"], plan["write"], plan["devices"], plan["listed"], network=network)
    seccomp.apply(seccomp.program(sockets=network))


def _drop_capabilities() -> None:
    """Root without its powers. Nothing to drop for anybody else."""
    for capability in range(64):
        _prctl(_CAPBSET_DROP, capability)
    header = (ctypes.c_uint32 * 2)(_CAPSET_VERSION, 0)
    none = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities could not be dropped")


def _limit(which: int, most: int) -> None:
    _, ceiling = resource.getrlimit(which)
    if ceiling != resource.RLIM_INFINITY:
        most = min(most, ceiling)
    resource.setrlimit(which, (most, most))


# --- the supervisor ---------------------------------------------------------------------------------------------------


def _supervise(child: int, lifeline: int) -> int | None:
    """Wait for the command or for the runtime's end, whichever comes first; then end everything below. The status, or
    None where somebody else has taken it."""
    poller = select.poll()
    poller.register(lifeline, select.POLLIN)
    watched = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
    if watched is not None:
        poller.register(watched, select.POLLIN)
    status: int | None = None
    try:
        while status is None:
            ready = dict(poller.poll(None if watched is not None else 50))
            if lifeline in ready and not os.read(lifeline, 64):
                os.kill(child, signal.SIGKILL)
                status = os.waitpid(child, 0)[1]
            else:
                status = _reaped(child)
    except (ChildProcessError, ProcessLookupError):
        pass
    _end_everything(child)
    if status is None:
        return None
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _reaped(child: int) -> int | None:
    """The command's status if it has ended. Orphans that came to us are taken off the table on the way."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == child:
            return status
        if pid == 0:
            return None


def _end_everything(group: int) -> None:
    """Kill all that is left. Stopped first, so that what forks fast does not run ahead of the killing."""
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    me = os.getpid()
    stopped: set[int] = set()
    while fresh := set(descendants(me)) - stopped:
        _signal(fresh, signal.SIGSTOP)
        stopped |= fresh
    while left := descendants(me):
        _signal(left, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.001)


def _signal(pids: "set[int] | list[int]", number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def _release_output() -> None:
    """The pipes must end when the command's processes have, not when this one has."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


def _say(plan: dict[str, Any], what: dict[str, Any]) -> None:
    try:
        os.write(plan["status"], json.dumps(what).encode() + b"\n")
    except OSError as problem:
        if problem.errno != errno.EPIPE:
            raise


def _prctl(option: int, value: int) -> None:
    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except AttributeError:
        pass  # not Linux: its group is all that can be ended
