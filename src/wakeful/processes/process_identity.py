"""Which process is meant: its number, and when it began, because numbers are given again.

A process is signalled through a handle that was opened first and looked at then: between the look and the signal its
number cannot become somebody else's. The standard library and nothing else: a supervisor loads it.
"""

import os
import signal
from typing import NamedTuple

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class ProcessIdentity(NamedTuple):
    """One process, among all that ever had its number on this machine."""

    pid: int
    started: int
    """In the kernel's ticks since it booted; 0: nobody can tell."""
    boot: str
    """Of which start of the machine; blank: nobody can tell."""

    @classmethod
    def of(cls, pid: int) -> "ProcessIdentity":
        """Of a process that is there."""
        return cls(pid, _started(pid), _boot())

    @property
    def is_known(self) -> bool:
        """Can it be told from another process with its number?"""
        return bool(self.started and self.boot)

    def is_alive(self) -> bool:
        """Is it this very process that runs? False also where nobody can tell."""
        return self.is_known and self.boot == _boot() and self.started == _started(self.pid)

    def open(self) -> int | None:
        """A handle (pidfd) of this very process; None: it is gone, or nobody can tell."""
        if not hasattr(os, "pidfd_open"):
            return None
        try:
            handle = os.pidfd_open(self.pid)
        except (ProcessLookupError, OSError):
            return None
        if self.is_alive():  # the handle was there first: it is this one
            return handle
        os.close(handle)
        return None

    def kill(self) -> bool:
        """Kill this very process. False: it is gone, or nobody can tell, and nothing was signalled."""
        handle = self.open()
        if handle is None:
            return False
        try:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True


def _started(pid: int) -> int:
    """When it began; 0: it is gone, only its remains are left, or there is no /proc."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()  # a name may have anything in it
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def _boot() -> str:
    try:
        with open(_BOOT_ID, encoding="ascii") as boot:
            return boot.read().strip()
    except OSError:
        return ""
