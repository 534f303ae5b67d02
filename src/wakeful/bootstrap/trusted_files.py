"""Files of workspaces that the owner trusts as they are."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful.engine.trusted_files import AcceptedFile


def trust(path: "str | PathLike[str]") -> "list[AcceptedFile]":
    """Trust a file as it is now; of a folder, its `AGENTS.md`, `CLAUDE.md`, skills and `mcp.json`.

    Returns the trusted files. Raises InvalidConfig where there is nothing to trust.
    """
    from wakeful.engine.trusted_files import TrustedFiles

    return TrustedFiles().accept(Path(path).expanduser())


def accepted_files() -> "list[AcceptedFile]":
    """Every file that the owner accepted, by path."""
    from wakeful.engine.trusted_files import TrustedFiles

    return TrustedFiles().all()
