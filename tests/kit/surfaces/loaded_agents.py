"""Agents of a home under load: those of `served_agents`, and `builder`, whose commands go on as tasks."""

import os
import re
from pathlib import Path
from typing import Any

from kit.surfaces import served_agents
from wakeful import Agent
from wakeful.ports import ModelRequest
from wakeful.testing import scripted

WORK = Path(os.environ["WAKEFUL_HOME"]).parent / "work"


def build(request: ModelRequest) -> Any:
    """`build N` begins a command that ends when there is a file `go-N`; a turn that a task woke is told."""
    text = str(request.history[-1].text) if not request.answered else ""
    if request.answered or "authority: runtime_instruction]" in text:
        return "told"
    said = re.search(r"build (\w+)", text)
    if said is None:
        return "nothing to build"
    command = f"while [ ! -e go-{said[1]} ]; do sleep 0.02; done; echo built {said[1]}"
    return {"calls": [{"name": "exec_command", "arguments": {"cmd": command, "yield_time_ms": 1}}]}


agents = [*served_agents.agents, Agent("builder", scripted(build), workspace=WORK)]
