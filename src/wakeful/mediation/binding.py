"""What an approval is bound to: this tool as it is declared, these arguments, this directory.

An HMAC with a secret of the store, so that nobody can make a binding that fits what they would rather run, and so that
arguments cannot be guessed from it. A change of any of them is another binding, and needs another approval.
"""

import hashlib
import hmac
import json
from typing import Any

from wakeful.contracts.tools import ToolDeclaration


def bind(secret: bytes, declaration: ToolDeclaration, arguments: dict[str, Any], directory: str | None) -> str:
    """The binding of one call."""
    bound = {
        "declaration": declaration.model_dump(mode="json"),
        "arguments": arguments,
        "directory": directory,
    }
    encoded = json.dumps(bound, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    return "hmac-sha256:" + hmac.new(secret, encoded, hashlib.sha256).hexdigest()


def holds(binding: str, expected: str) -> bool:
    return hmac.compare_digest(binding, expected)
