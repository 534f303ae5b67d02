"""Agents whose people have phones: those of `served_agents`, `desk`, which says which phone is told, and `miner`, whose
provider lets nobody in while there is a file `dry` in the home."""

import os
from pathlib import Path

from kit.surfaces import served_agents
from wakeful import Agent
from wakeful.ports import ModelRequest
from wakeful.testing import scripted


def paid(request: ModelRequest) -> object:
    """A model whose key ran dry, for as long as the file says so."""
    if (Path(os.environ["WAKEFUL_HOME"]) / "dry").exists():
        return {"fail": [{"kind": "quota_exhausted", "message": "the balance is used up"}]}
    return "dug"


desk = Agent("desk", scripted(served_agents.answer), tools=[served_agents.refund], notify={"to": "channel:chat"})
miner = Agent("miner", scripted(paid))
agents = [*served_agents.agents, desk, miner]
