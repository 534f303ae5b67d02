"""Did the sandbox refuse something, and what? Told from what a failed command says, and only where it fits.

The kernel tells a command and not us. So a refusal is believed when the words are the system's own for it, and the
place or the network that they name is really one that this command was kept from.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from wakeful.contracts.tools import Confinement
from wakeful.sandbox.places import is_below

_READ_ONLY = "Read-only file system"
_DENIED = ("Permission denied", "Operation not permitted")
_NO_NETWORK = re.compile(
    r"Network is unreachable|Could not resolve host|Temporary failure in name resolution|Name or service not known"
    r"|getaddrinfo (?:EAI_AGAIN|ENOTFOUND)"
)
_HOST = re.compile(r"(?:resolve host:?|EAI_AGAIN|ENOTFOUND|connect to|host) ['\"]?([\w.-]+\.[\w.-]+)")
# A command chooses its own words: no place of a line is looked at twice, however it is written.
_PATH = re.compile(r"['\"\u2018]([^'\"\u2018\u2019]++)['\"\u2019]|(?<![\w.+@%-])([~/.]?[\w.+@%-]*+(?:/[\w.+@%-]++)+)")
_LOOKED_AT = 65_536


class Denial(NamedTuple):
    """What was refused, and where."""

    boundary: Literal["read", "write", "network"]
    target: str | None


def told(
    said: bytes,
    confinement: Confinement,
    hidden: Sequence[str],
    protected: Sequence[str] = (),
    split: Sequence[str] = (),
) -> Denial | None:
    """The first refusal that the words of a failed command show. `split` are folders in which nothing can be made."""
    if confinement.mode == "not_enforced":
        return None
    for line in said[-_LOOKED_AT:].decode(errors="replace").splitlines():
        if confinement.network == "none" and _NO_NETWORK.search(line):
            host = _HOST.search(line)
            return Denial("network", host.group(1) if host else None)
        if _READ_ONLY in line:
            return Denial("write", next(iter(_paths(line, confinement.cwd)), None))
        if any(words in line for words in _DENIED):
            for path in _paths(line, confinement.cwd):
                if is_below(path, hidden):
                    return Denial("read", path)
                if is_below(path, protected) or str(Path(path).parent) in split:
                    return Denial("write", path)
                if confinement.mode == "landlock" and not is_below(path, confinement.write_roots):
                    reads = is_below(path, confinement.read_roots)
                    return Denial("write" if reads else "read", path)
    return None


def _paths(line: str, cwd: str) -> list[str]:
    """What looks like a path, the last first: before it programs name themselves.

    Something with a slash, or a name in quotes, which is a file of the working directory.
    """
    found = [quoted or plain for quoted, plain in reversed(_PATH.findall(line))]
    return [os.path.normpath(Path(cwd, path)) for path in found if " " not in path and len(path) < 4096]
