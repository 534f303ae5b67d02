"""Where the socket of a home is. By itself: every command looks there, and has to start fast."""

import hashlib
import os
import tempfile
from pathlib import Path

from wakeful.settings.home import home

LONGEST_SOCKET = 100
"""Bytes of a path; the kernel takes 107."""


def run_folder() -> Path:
    return home() / "run"


def socket_path() -> Path:
    """In the home; where its path is too long for a socket, in a folder of this user elsewhere."""
    path = run_folder() / "wakeful.sock"
    if len(os.fsencode(path)) <= LONGEST_SOCKET:
        return path
    name = hashlib.sha256(os.fsencode(run_folder().resolve())).hexdigest()[:16]
    place = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"wakeful-{os.getuid()}"
    return place / f"{name}.sock"
