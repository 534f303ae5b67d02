"""An agent whose model breaks after a payment, until a file says that it is mended."""

import os
from pathlib import Path
from typing import Any

from wakeful import Agent, tool
from wakeful.errors import ModelFailure
from wakeful.ports import ModelRequest
from wakeful.testing import scripted

HOME = Path(os.environ["WAKEFUL_HOME"])


@tool(effect="keyed")
def pay() -> str:
    """Pay."""
    with (HOME / "paid.txt").open("a") as ledger:
        ledger.write("paid\n")
    return "paid"


def reply(request: ModelRequest) -> Any:
    if not any(item.role == "tool" for item in request.history):
        return {"calls": [{"name": "pay", "arguments": {}}]}
    if not (HOME / "mended").exists():
        raise ModelFailure("half an answer", kind="invalid_response", stage="body", retryable=False)
    return "It is paid."


clerk = Agent("clerk", scripted(reply), tools=[pay])
