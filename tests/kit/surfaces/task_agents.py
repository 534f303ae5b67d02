"""An agent of a served process that begins commands: `begin COMMAND` runs it as a task, whose end is answered, and
`run COMMAND` waits for it."""

import os
from typing import Any

from wakeful import Agent
from wakeful.contracts.conversation import UserItem
from wakeful.ports import ModelRequest
from wakeful.testing import scripted


def answer(request: ModelRequest) -> Any:
    said = [item.text for item in request.history if isinstance(item, UserItem)][-1]
    if "authority: runtime_instruction]" in said:
        return "I was told."
    if request.answered:
        return "It runs."
    how = "begin" if "begin " in said else "run"
    arguments = {"cmd": said.partition(f"{how} ")[2], "yield_time_ms": 1 if how == "begin" else 60_000}
    return {"calls": [{"name": "exec_command", "arguments": arguments}]}


agents = [Agent("ops", scripted(answer), workspace=os.environ["WORK"])]
