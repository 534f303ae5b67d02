"""Hooks of the owner's file: `[[hooks]]` in `wakeful.toml`, each a command that is asked about calls.

    [[hooks]]
    point = "pre_tool_use"
    match = "exec_command"
    command = ["python3", "check.py"]
    timeout = 5
    on_error = "closed"

The file is the owner's, the one that also names providers, and never one of a workspace: what is in a folder that
somebody checked out must not run beside the gate. A mistake in it is told with its place, and nothing runs until it is
mended: an owner who wants calls checked has them checked.
"""

import os
import shlex
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from wakeful import programs
from wakeful.contracts.errors import InvalidConfig, inside
from wakeful.sandbox.environment import scrubbed
from wakeful.settings.owner_file import OwnerFile, check_names, owner_file, settings_path
from wakeful.tools.command_hooks import CommandHook
from wakeful.tools.hooks import DEFAULT_SECONDS, Hook

KNOWN = ("point", "match", "command", "timeout", "on_error", "name")
_read: dict[str, tuple[tuple[int, int, int], tuple[Hook, ...]]] = {}
"""What a file said, by its path and as long as it is the same file: it is looked at before every run."""


def owner_hooks(environ: Mapping[str, str], keys: Callable[[], frozenset[str]]) -> tuple[Hook, ...]:
    """The hooks of the owner's file. `keys` are variables that no command gets."""
    path = settings_path(environ)
    try:
        found = path.stat()
    except OSError:
        return read_hooks(owner_file(environ), keys)  # it says what is wrong with the file, if anything is
    seen = found.st_mtime_ns, found.st_size, found.st_ino
    known = _read.get(str(path))
    if known is None or known[0] != seen:
        known = _read[str(path)] = seen, read_hooks(owner_file(environ), keys)
    return known[1]


def read_hooks(file: OwnerFile, keys: Callable[[], frozenset[str]]) -> tuple[Hook, ...]:
    """The hooks of a file. Raises InvalidConfig with the place."""
    path, listed = file.path, file.data.get("hooks", [])
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        wrong = InvalidConfig(f"{path}: hooks is not a list of tables", "Write [[hooks]] above the lines of each.")
        raise wrong.within("hooks")
    found = []
    for place, one in enumerate(listed):
        with inside("hooks", place):
            found.append(_hook(one, f"{path}: hooks[{place}]", path.parent, keys))
    return tuple(found)


def _hook(table: Mapping[str, Any], where: str, folder: Path, keys: Callable[[], frozenset[str]]) -> Hook:
    check_names(table, KNOWN, f"{where}: there is")
    command = _command(table.get("command"), where)
    on_error = table.get("on_error", "closed")
    if on_error not in ("closed", "open"):
        raise InvalidConfig(f"{where}: on_error is {on_error!r}", 'Write "closed", or "open" for one that only looks.')
    name = table.get("name", command[0])
    if not isinstance(name, str) or not name:
        raise InvalidConfig(f"{where}: name is {name!r}", "Write a text in quotes.")
    asks = CommandHook(command, str(folder.absolute()), lambda: command_environment(keys()))
    point: Any = table.get("point", "pre_tool_use")
    match: Any = table.get("match", "*")
    try:
        return Hook(asks, point, match, table.get("timeout", DEFAULT_SECONDS), on_error == "open", name)
    except InvalidConfig as wrong:
        raise InvalidConfig(f"{where}: {wrong.message}", wrong.hint) from None


def _command(given: Any, where: str) -> list[str]:
    words = shlex.split(given) if isinstance(given, str) else given
    if not isinstance(words, list) or not words or not all(isinstance(word, str) and word for word in words):
        raise InvalidConfig(f"{where}: command is {given!r}", 'Write its words: command = ["python3", "check.py"].')
    return words


def command_environment(keys: frozenset[str]) -> dict[str, str]:
    """What a command of the owner gets: no keys, and programs that no agent can write."""
    usual = scrubbed(os.environ, home=str(Path.home()), temporary=tempfile.gettempdir(), keys=keys)
    return usual | {
        "PATH": programs.search_path(owners=True)
    }  # a hook is not confined: it must not run an agent's programs
