"""What holds for every tool that a client runs, however it was declared: its name, its owner, and that no code of it is
here. The gate writes such a call down as a request; the client's answer is its result.
"""

import re
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.tools import ToolDeclaration

CLIENT = "client"
SLUG = re.compile(r"[a-z][a-z0-9_-]*")


class ForClient(NamedTuple):
    """What a client is sent beyond the call itself."""

    arguments: dict[str, Any] | None = None
    """What it runs the call with, where that is not what the model wrote."""
    runtime: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    """`run_id`: what the caller calls the run."""


NOTHING_MORE = ForClient()


def client_name(name: str) -> str:
    """`client/<slug>`, of a bare name or of one that is so already. Raises InvalidConfig for any other."""
    namespace, slash, slug = name.rpartition("/")
    if (slash and namespace != CLIENT) or not SLUG.fullmatch(slug):
        raise InvalidConfig(
            f"{name!r} cannot be the name of a tool that a client runs",
            "such a tool is client/<slug>: small letters, digits, _ and -, a letter first",
        )
    return f"{CLIENT}/{slug}"


def run_by_client(declaration: ToolDeclaration) -> ToolDeclaration:
    """The declaration of a tool whose calls become requests to a client. It is safe beside others if it says so."""
    known: dict[str, Any] = {"answered_by": CLIENT, "runtime_owner": CLIENT, "external": True}
    if "parallel_safe" not in declaration.model_fields_set:
        known["parallel_safe"] = False
    return declaration.model_copy(update=known)


def not_here(name: str) -> AssertionError:
    """Nothing may ever start such a tool in this process: the gate asks the client instead."""
    return AssertionError(f"{name} is run by a client, never by code of this process")
