"""A seccomp filter, built by hand: which system calls a command may not make.

Two parts. Always: what reaches past namespaces and folders (keyrings, kernel modules, BPF, io_uring, which would slip
by the second part, new user namespaces, typing into a terminal). And sockets: with namespaces around it a command keeps
the usual families, without them and without network it gets none.
"""

import ctypes
import os
import struct
from functools import cache

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2

_LOAD, _JEQ, _JSET, _JGE, _RET = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_NR, _ARCH, _ARGS = 0, 4, 16
_EPERM, _EACCES, _ENOSYS = 1, 13, 38
_CLONE_NEWUSER = 0x10000000
_TERMINAL_TRICKS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

_ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X86 = {
    "ioctl": 16,
    "socket": 41,
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
}
_ARM = {
    "ioctl": 29,
    "socket": 198,
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
}
_ARGUED = {"ioctl", "socket", "clone", "clone3"}
FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: what a network namespace holds. AF_VSOCK and others it does not."""


def supported() -> bool:
    return os.uname().machine in _ARCHES


@cache
def program(*, sockets: bool) -> bytes:
    """The filter as BPF. With `sockets`, the usual families; without, none at all."""
    machine = os.uname().machine
    numbers = _X86 if machine == "x86_64" else _ARM
    made = [_step(_LOAD, k=_ARCH), _step(_JEQ, 1, 0, _ARCHES[machine]), _refuse(_EPERM), _step(_LOAD, k=_NR)]
    if machine == "x86_64":  # the x32 numbers are other names for the same calls
        made += [_step(_JGE, 0, 1, 0x40000000), _refuse(_ENOSYS)]
    for name, number in numbers.items():
        if name not in _ARGUED:
            made += [_step(_JEQ, 0, 1, number), _refuse(_EPERM)]
    made += [_step(_JEQ, 0, 1, numbers["clone3"]), _refuse(_ENOSYS)]  # its flags cannot be seen; libraries fall back
    made += [_step(_JEQ, 0, 4, numbers["clone"]), _argument(0), _step(_JSET, 0, 1, _CLONE_NEWUSER)]
    made += [_refuse(_EPERM), _allow()]
    tricks = [step for trick in _TERMINAL_TRICKS for step in (_step(_JEQ, 0, 1, trick), _refuse(_EPERM))]
    made += [_step(_JEQ, 0, len(tricks) + 2, numbers["ioctl"]), _argument(1), *tricks, _allow()]
    families = [step for family in FAMILIES for step in (_step(_JEQ, 0, 1, family), _allow())] if sockets else []
    made += [_step(_JEQ, 0, len(families) + 2, numbers["socket"]), _argument(0), *families, _refuse(_EACCES)]
    return b"".join([*made, _allow()])


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


def _argument(index: int) -> bytes:
    """The lower half of an argument: flags, families and requests fit in it on little-endian machines."""
    return _step(_LOAD, k=_ARGS + 8 * index)


def _refuse(number: int) -> bytes:
    return _step(_RET, k=_ERRNO | number)


def _allow() -> bytes:
    return _step(_RET, k=_ALLOW)
