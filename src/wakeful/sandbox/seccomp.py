"""A seccomp filter, built by hand: which system calls a command may not make.

Always refused: what reaches past namespaces and folders (keyrings, kernel modules, BPF, io_uring, which would slip by
every check of an argument, new user namespaces, typing into a terminal), and the setuid bit, which stays on a file of
the workspace when the sandbox is gone. Sockets: with namespaces around it a command keeps the usual families. Without
them, nothing covers the sockets of other programs, the runtime's own among them: a command gets no unix socket, only
pairs whose ends are connected to each other and to nobody else, and without network it gets no socket at all. Without
namespaces it also shares processes and System V IPC with everybody of the same user: limits and priorities are its own
only, and IPC objects are refused.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from functools import cache

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2

_LOAD, _AND, _JEQ, _JSET, _JGE, _RET = 0x20, 0x54, 0x15, 0x45, 0x35, 0x06
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_NR, _ARCH, _ARGS = 0, 4, 16
_EPERM, _EACCES, _ENOSYS = 1, 13, 38
_CLONE_NEWUSER = 0x10000000
_TERMINAL_TRICKS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
_SETUID = 0o4000
_MAKES_A_FILE = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE: otherwise the mode is whatever was in the register
_SMALL_SEGMENT = 64 * 1024
"""Of System V shared memory. A segment that no process has attached is in no process's count: larger ones are refused.
Databases lock their folder with one of a few bytes."""

_ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X86 = {
    "ioctl": 16,
    "socket": 41,
    "socketpair": 53,
    "clone": 56,
    "clone3": 435,
    "unshare": 272,
    "setns": 308,
    "mount": 165,
    "umount2": 166,
    "pivot_root": 155,
    "chroot": 161,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "acct": 163,
    "quotactl": 179,
    "init_module": 175,
    "delete_module": 176,
    "finit_module": 313,
    "kexec_load": 246,
    "kexec_file_load": 320,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "bpf": 321,
    "perf_event_open": 298,
    "userfaultfd": 323,
    "open_by_handle_at": 304,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "iopl": 172,
    "ioperm": 173,
    "open": 2,
    "creat": 85,
    "openat": 257,
    "openat2": 437,
    "mknod": 133,
    "mknodat": 259,
    "chmod": 90,
    "fchmod": 91,
    "fchmodat": 268,
    "fchmodat2": 452,
    "prlimit64": 302,
    "setpriority": 141,
    "ioprio_set": 251,
    "sched_setparam": 142,
    "sched_setscheduler": 144,
    "sched_setaffinity": 203,
    "sched_setattr": 314,
    "shmget": 29,
    "shmat": 30,
    "shmctl": 31,
    "semget": 64,
    "semop": 65,
    "semctl": 66,
    "semtimedop": 220,
    "msgget": 68,
    "msgsnd": 69,
    "msgrcv": 70,
    "msgctl": 71,
    "mq_open": 240,
    "mq_unlink": 241,
}
_ARM = {
    "ioctl": 29,
    "socket": 198,
    "socketpair": 199,
    "clone": 220,
    "clone3": 435,
    "unshare": 97,
    "setns": 268,
    "mount": 40,
    "umount2": 39,
    "pivot_root": 41,
    "chroot": 51,
    "swapon": 224,
    "swapoff": 225,
    "reboot": 142,
    "acct": 89,
    "quotactl": 60,
    "init_module": 105,
    "delete_module": 106,
    "finit_module": 273,
    "kexec_load": 104,
    "kexec_file_load": 294,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "bpf": 280,
    "perf_event_open": 241,
    "userfaultfd": 282,
    "open_by_handle_at": 265,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "openat": 56,
    "openat2": 437,
    "mknodat": 33,
    "fchmod": 52,
    "fchmodat": 53,
    "fchmodat2": 452,
    "prlimit64": 261,
    "setpriority": 140,
    "ioprio_set": 30,
    "sched_setparam": 118,
    "sched_setscheduler": 119,
    "sched_setaffinity": 122,
    "sched_setattr": 274,
    "shmget": 194,
    "shmat": 196,
    "shmctl": 195,
    "semget": 190,
    "semop": 193,
    "semctl": 191,
    "semtimedop": 192,
    "msgget": 186,
    "msgsnd": 189,
    "msgrcv": 188,
    "msgctl": 187,
    "mq_open": 180,
    "mq_unlink": 181,
}
_MODE_AT = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2}
"""Which argument is the mode of a file."""
_OPEN_AT = {"open": (1, 2), "openat": (2, 3)}
"""Which arguments are the flags and the mode."""
_OF_ONE_PROCESS = ("prlimit64", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr")
"""Their first argument is a process; 0 is the caller."""
_OF_SOME_PROCESSES = {"setpriority": 0, "ioprio_set": 1}
"""Their first argument says what the second one is: this number, a process."""
_SHARED_OBJECTS = frozenset(
    {"shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop"}
    | {"msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"}
)
"""System V IPC and POSIX message queues."""
_JUDGED_BY_ARGUMENTS = {"ioctl", "socket", "socketpair", "clone", "clone3", "openat2", *_MODE_AT, *_OPEN_AT}
_JUDGED_BY_ARGUMENTS |= {*_OF_ONE_PROCESS, *_OF_SOME_PROCESSES, *_SHARED_OBJECTS}
_UNIX = 1
_OF_THE_NETWORK = (2, 10, 16)
"""AF_INET, AF_INET6, AF_NETLINK: with AF_UNIX, what a network namespace holds. AF_VSOCK and others it does not."""
_CONNECTED = (1, 5)
"""SOCK_STREAM and SOCK_SEQPACKET: the ends of a pair stay connected. One of datagrams could send to any socket."""
_KIND_OF_SOCKET = 0xF
"""What is left of a type without SOCK_CLOEXEC and SOCK_NONBLOCK."""


def supported() -> bool:
    return os.uname().machine in _ARCHES


@cache
def program(*, sockets: bool, namespaces: bool = False) -> bytes:
    """The filter as BPF. With `sockets`, the families of the network; without, none at all. With `namespaces`, for a
    command that has its own processes, IPC and mounts around it: it may have unix sockets too."""
    machine = os.uname().machine
    numbers = _X86 if machine == "x86_64" else _ARM
    made = [_step(_LOAD, k=_ARCH), _step(_JEQ, 1, 0, _ARCHES[machine]), _refuse(_EPERM), _step(_LOAD, k=_NR)]
    if machine == "x86_64":  # the x32 numbers are other names for the same calls
        made += [_step(_JGE, 0, 1, 0x40000000), _refuse(_ENOSYS)]
    for name, number in numbers.items():
        if name not in _JUDGED_BY_ARGUMENTS:
            made += _on(number, _refuse(_EPERM))
    for name in ("clone3", "openat2"):  # flags and mode cannot be seen; libraries fall back
        made += _on(numbers[name], _refuse(_ENOSYS))
    made += _on(numbers["clone"], _argument(0), _step(_JSET, 0, 1, _CLONE_NEWUSER), _refuse(_EPERM), _allow())
    tricks = [step for trick in _TERMINAL_TRICKS for step in (_step(_JEQ, 0, 1, trick), _refuse(_EPERM))]
    made += _on(numbers["ioctl"], _argument(1), *tricks, _allow())
    families = (*_OF_THE_NETWORK, *((_UNIX,) if namespaces else ())) if sockets else ()
    made += _on(numbers["socket"], _argument(0), *_allow_each(families), _refuse(_EACCES))
    if not namespaces:
        kind = (_argument(1), _step(_AND, k=_KIND_OF_SOCKET))
        made += _on(numbers["socketpair"], *kind, *_allow_each(_CONNECTED), _refuse(_EACCES))
    made += _without_setuid(numbers)
    made += _ipc_of_its_own(numbers) if namespaces else _nobody_elses(numbers)
    return b"".join([*made, _allow()])


def _without_setuid(numbers: dict[str, int]) -> list[bytes]:
    made: list[bytes] = []
    for name, mode in _MODE_AT.items():
        if name in numbers:
            made += _on(numbers[name], _argument(mode), _step(_JSET, 0, 1, _SETUID), _refuse(_EPERM), _allow())
    for name, (flags, mode) in _OPEN_AT.items():
        if name in numbers:
            made += _on(
                numbers[name],
                *(_argument(mode), _step(_JSET, 1, 0, _SETUID), _allow()),
                *(_argument(flags), _step(_JSET, 0, 1, _MAKES_A_FILE), _refuse(_EPERM), _allow()),
            )
    return made


def _ipc_of_its_own(numbers: dict[str, int]) -> list[bytes]:
    """Everything that goes away with the namespace, but no memory that nobody counts."""
    size = [_step(_LOAD, k=_ARGS + 8 + 4), _step(_JEQ, 1, 0, 0), _refuse(_EPERM)]  # the upper half
    size += [_argument(1), _step(_JGE, 0, 1, _SMALL_SEGMENT + 1), _refuse(_EPERM)]
    return _on(numbers["shmget"], *size, _allow())


def _nobody_elses(numbers: dict[str, int]) -> list[bytes]:
    """Limits, priorities and places of processes: the caller's own only. Objects that others see: none."""
    made: list[bytes] = []
    for name in _OF_ONE_PROCESS:
        made += _on(numbers[name], _argument(0), _step(_JEQ, 0, 1, 0), _allow(), _refuse(_EPERM))
    for name, process in _OF_SOME_PROCESSES.items():
        made += _on(
            numbers[name],
            *(_argument(0), _step(_JEQ, 1, 0, process), _refuse(_EPERM)),
            *(_argument(1), _step(_JEQ, 0, 1, 0), _allow(), _refuse(_EPERM)),
        )
    for name in sorted(_SHARED_OBJECTS):
        made += _on(numbers[name], _refuse(_EPERM))
    return made


def apply(filtered: bytes) -> None:
    """Put the filter on this thread and everything it will start. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
    code = ctypes.create_string_buffer(filtered, len(filtered))
    holder = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(filtered) // 8, ctypes.addressof(code)))
    _checked(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, holder, 0, 0), "PR_SET_SECCOMP")


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _step(code: int, true: int = 0, false: int = 0, k: int = 0) -> bytes:
    return struct.pack("HBBI", code, true, false, k)


def _on(number: int, *steps: bytes) -> list[bytes]:
    """The steps for one system call. Their last one decides; for every other call they are skipped."""
    return [_step(_JEQ, 0, len(steps), number), *steps]


def _allow_each(values: Iterable[int]) -> list[bytes]:
    return [step for value in values for step in (_step(_JEQ, 0, 1, value), _allow())]


def _argument(index: int) -> bytes:
    """The lower half of an argument: flags, families and requests fit in it on little-endian machines."""
    return _step(_LOAD, k=_ARGS + 8 * index)


def _refuse(number: int) -> bytes:
    return _step(_RET, k=_ERRNO | number)


def _allow() -> bytes:
    return _step(_RET, k=_ALLOW)
