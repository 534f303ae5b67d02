"""Landlock by direct system calls: which folders a process may read and write, for it and all it starts.

Rights are granted folder by folder and everything else is refused; nothing can be taken out of a granted folder again.
Newer kernels know more rights: what this one does not know is not asked for, and `holds` says what is missing for it.
"""

import ctypes
import os
import struct
from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_GET_VERSION = 1
_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_NET_BIND_AND_CONNECT_TCP = 0b11
_SCOPE_ABSTRACT_UNIX, _SCOPE_SIGNAL = 1 << 0, 1 << 1

READ = EXECUTE | READ_FILE | READ_DIR
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV
"""The rights that a rule about a single file may grant."""


def abi() -> int:
    """The version this kernel has; 0 for none."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return max(0, int(libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(_GET_VERSION))))
    except (OSError, AttributeError):
        return 0


def missing(version: int) -> list[str]:
    """What an older version does not hold, in words."""
    lacks = {
        2: "moving files between folders is refused altogether",
        3: "files outside can be truncated",
        5: "device ioctls are open",
        6: "signals and abstract sockets reach outside",
    }
    return [words for needed, words in lacks.items() if version < needed]


def handled(version: int) -> int:
    rights = READ | WRITE_FILE | _MAKE_AND_REMOVE
    for needed, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        rights |= right if version >= needed else 0
    return rights


def restrict(
    read: Iterable[str], write: Iterable[str], devices: Iterable[str], listed: Iterable[str] = (), *, network: bool
) -> None:
    """Hold this thread, and everything it starts, to these places. Needs no_new_privs. Raises OSError.

    Of what is `listed`, only the names in it can be read.
    """
    version = abi()
    libc = ctypes.CDLL(None, use_errno=True)
    everything = handled(version)
    ruleset = _ruleset(libc, version, everything, network)
    try:
        for paths, rights in (
            (read, READ),
            (write, everything & ~_IOCTL_DEV),
            (listed, READ_DIR),
            (devices, everything & (READ_FILE | WRITE_FILE | READ_DIR | _TRUNCATE | _IOCTL_DEV)),
        ):
            for path in paths:
                _grant(libc, ruleset, path, rights)
        _checked(libc.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint(0)), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def _ruleset(libc: ctypes.CDLL, version: int, rights: int, network: bool) -> int:
    fields = [rights]
    if version >= 4:
        fields.append(0 if network else _NET_BIND_AND_CONNECT_TCP)
    if version >= 6:
        fields.append(_SCOPE_SIGNAL | _SCOPE_ABSTRACT_UNIX)
    attributes = ctypes.create_string_buffer(struct.pack(f"={len(fields)}Q", *fields), 8 * len(fields))
    made = libc.syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    if made < 0:
        _checked(made, "landlock_create_ruleset")
    return int(made)


def _grant(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there cannot be granted
    try:
        if not os.path.isdir(path):
            rights &= ON_FILES
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, handle), 12)
        code = libc.syscall(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint(0))
        _checked(code, f"landlock_add_rule for {path}")
    finally:
        os.close(handle)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
