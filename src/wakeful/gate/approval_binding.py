"""What an approval is bound to: this tool as it is declared, these arguments, this directory, and what holds it.

An HMAC with a secret of the store, so that nobody can make a binding that fits what they would rather run, and so that
arguments cannot be guessed from it. A change of any of them is another binding, and needs another approval.
"""

import hashlib
import hmac
import json
from typing import Any

from wakeful.contracts.tools import Confinement, ToolDeclaration


def held_by(confinement: Confinement | None) -> str | None:
    """What a call is held by, as a person is told: a yes to a command that is held is none to one that is not."""
    return None if confinement is None else f"{confinement.mode}, network {confinement.network}"


def bind(
    secret: bytes,
    declaration: ToolDeclaration,
    arguments: dict[str, Any],
    directory: str | None,
    held: str | None = None,
) -> str:
    """The binding of one call."""
    bound = {
        # Without what has its default: a field that a later version adds does not void what was approved before.
        "declaration": declaration.model_dump(mode="json", exclude_defaults=True),
        "arguments": arguments,
        "directory": directory,
        "held": held,
    }
    encoded = json.dumps(bound, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    return "hmac-sha256:" + hmac.new(secret, encoded, hashlib.sha256).hexdigest()


def holds(binding: str, expected: str) -> bool:
    return hmac.compare_digest(binding, expected)
