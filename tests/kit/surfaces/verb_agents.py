"""Agents of the process that commands are tried on: those of `served_agents`, and some that leave what commands are
about: a request to a client, an unknown outcome, a background command, an approval whose time ran out,
something remembered."""

import os
from pathlib import Path
from typing import Any

from kit.surfaces.served_agents import agents as served
from kit.surfaces.served_agents import refund
from wakeful import Agent, OutcomeUnknown, tool
from wakeful.errors import ModelFailure
from wakeful.ports import ModelRequest
from wakeful.testing import scripted


@tool(external=True, timeout=3600)
def pick_file(folder: str) -> str:
    """Let the person pick a file."""
    raise AssertionError("a client runs it")


@tool
def ship(order: str) -> str:
    """Send it, by a carrier that does not answer."""
    raise OutcomeUnknown("the carrier did not answer")


def building(request: ModelRequest) -> Any:
    """A command of its own for each message: the same one would be the same task."""
    said = str(request.history[-1].text)
    if request.answered or "runtime_instruction" in said:
        return "done"
    arguments = {"cmd": f"echo {said.split()[-1]}; sleep 600", "yield_time_ms": 1}
    return {"calls": [{"name": "exec_command", "arguments": arguments}]}


def calling(name: str, **arguments: Any) -> Any:
    def reply(request: ModelRequest) -> Any:
        if request.answered or "runtime_instruction" in str(request.history[-1].text):
            return "done"
        return {"calls": [{"name": name, "arguments": arguments}]}

    return scripted(reply)


def breaking(_: ModelRequest) -> Any:
    raise ModelFailure("half an answer", kind="invalid_response", stage="body", retryable=False)


WORK = Path(os.environ["WAKEFUL_HOME"]).parent / "work"
WORK.mkdir(exist_ok=True)
agents = [
    *served,
    Agent("picker", calling("client/pick_file", folder="/home"), tools=[pick_file]),
    Agent("hasty", calling("refund", cents=5), tools=[refund], approval_expiry=0.05),
    Agent("shipper", calling("ship", order="A17"), tools=[ship]),
    Agent("builder", scripted(building), workspace=WORK),
    Agent("breaker", scripted(breaking)),
    Agent("archivist", scripted(lambda _: "It is orca."), memory=True),
]
