"""Runs one server and sees to it that nothing of it outlives the program that asked for it.

A process of its own, started as a plain file: it imports nothing of wakeful. It holds the end of a pipe whose other end
only the program has. When that pipe closes, because the program closed it or died in any way, the server and everything
it started are ended and waited for. When the guard itself is killed, the kernel ends the server.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable

Control = Callable[[int, int], int]
TERM_SECONDS = 1.0
"""What a server gets between being asked to end and being ended."""
KILL_SECONDS = 5.0
SUBREAPER, DEATH_SIGNAL = 36, 1  # prctl numbers of Linux


def main(arguments: list[str]) -> int:
    lifeline = int(arguments[0])
    os.set_inheritable(lifeline, False)
    control = _process_control()
    if control is not None:
        control(SUBREAPER, 1)  # what the server's children leave behind comes to the guard, to be ended
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for each in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda *_: None)
    guard = os.getpid()
    server = os.fork()
    if server == 0:
        _become(arguments[1:], guard, control)
    # The pipes are the server's: a guard that held them too would keep them open after its end.
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    status: int | None = None
    while status is None:
        ready, _, _ = select.select([lifeline, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            status = _status_of(server)
        if status is None and lifeline in ready:
            status = _end(server)
    _end_the_rest(server)
    return status


def _become(command: list[str], guard: int, control: "Control | None") -> None:
    """In the child: its own session, dead with the guard, and then the server's program."""
    try:
        signal.set_wakeup_fd(-1)
        for each in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)
        os.setsid()
        if control is not None:
            control(DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != guard:  # it died before the kernel was told to watch it
                os._exit(1)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _end(server: int) -> int:
    """Ask the server to end, then end it."""
    _signal_group(server, signal.SIGTERM)
    status = _waited(server, TERM_SECONDS)
    if status is None:
        _signal_group(server, signal.SIGKILL)
        status = _waited(server, KILL_SECONDS)
    return 1 if status is None else status


def _end_the_rest(server: int) -> None:
    """Everything the server left: its group, and what hid in sessions of its own."""
    _signal_group(server, signal.SIGKILL)
    until = time.monotonic() + KILL_SECONDS
    while time.monotonic() < until:
        try:
            left, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if left == 0:
            for child in _children():
                _kill(child)
            time.sleep(0.005)


def _children() -> list[int]:
    own = os.getpid()
    found = []
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - this file imports as little as it can
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    after_name = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(after_name[1]) == own:
                found.append(int(name))
    return found


def _waited(server: int, seconds: float) -> int | None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        status = _status_of(server)
        if status is not None:
            return status
        time.sleep(0.005)
    return None


def _status_of(server: int) -> int | None:
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return None
            if pid == server:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
    except ChildProcessError:
        return 1


def _signal_group(server: int, number: int) -> None:
    try:
        os.killpg(server, number)
    except (ProcessLookupError, PermissionError):
        pass


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _process_control() -> "Control | None":
    """prctl, where there is one. Loaded before the fork: nothing may go wrong after it."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    control: Control = ctypes.CDLL(None).prctl
    return control


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
