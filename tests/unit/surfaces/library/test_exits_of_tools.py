"""A tool, or other code of the caller, that raises what ends a process: the call ends, and nobody waits for ever."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, sys
from wakeful import Agent, run, run_sync, tool
from wakeful.providers.scripted import ScriptedModel

raised = {"KeyboardInterrupt": KeyboardInterrupt, "SystemExit": SystemExit}[sys.argv[1]]

@tool(effect="irreversible")
async def end() -> str:
    raise raised("from a tool")

def passes_on():
    return end()

@tool(effect="irreversible")
def later() -> str:
    return passes_on()

def told(ctx):
    raise raised("from instructions")

def agent(name, **given):
    return Agent("clerk", ScriptedModel([{"calls": [{"name": name}]}, "done"]), tools=[end, later], **given)

async def by_hand(name):
    return await run(agent(name), "go")

where = sys.argv[2]
if where == "instructions":
    try:
        run_sync(agent("end", instructions=told), "go")
    except raised as error:
        print("raised", error)
else:
    name, _, how = where.partition("-")
    result = asyncio.run(by_hand(name)) if how == "async" else run_sync(agent(name), "go")
    print(result.output)
print(run_sync(Agent("other", ScriptedModel(["still here"])), "go").output)
"""


def said(raised: str, where: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, raised, where], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "SystemExit"])
@pytest.mark.parametrize("where", ["end", "later", "end-async"])
def test_a_tool_that_raises_it_fails_and_the_run_goes_on(raised: str, where: str) -> None:
    assert said(raised, where) == ["done", "still here"]


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "SystemExit"])
def test_other_code_of_the_caller_raises_it_out_of_run_sync_and_the_next_run_works(raised: str) -> None:
    assert said(raised, "instructions") == ["raised from instructions", "still here"]
