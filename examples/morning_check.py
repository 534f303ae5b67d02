"""An always-on agent that checks the backups every weekday at seven and asks before it repairs anything.

    python examples/morning_check.py            # lives until Ctrl-C; approve in another terminal: wakeful approvals
    python examples/morning_check.py rehearse   # plays Monday morning on a clock of its own, and ends

Killed and started again, it goes on: a check that was missed is made up for, an approval that is pending stays pending.
For a real model put `"anthropic:claude-haiku-4-5"` in the place of `scripted(...)`.
"""

import asyncio
import sys
from datetime import UTC, datetime

from wakeful import Agent, Approve, Runtime, open_store, tool
from wakeful.testing import FixedClock, scripted

HOME = "backups-home"


@tool(effect="pure")
def list_backups() -> list[str]:
    """The backups of the last night, with their state."""
    return ["mail: ok", "photos: missing"]


@tool(effect="keyed", approval=True)
def start_backup(name: str) -> str:
    """Make a backup now."""
    return f"{name}: backed up"


SCRIPT = [
    {"calls": [{"name": "list_backups", "arguments": {}}]},
    {"calls": [{"name": "start_backup", "arguments": {"name": "photos"}}]},
    "The backup of the photos was missing; I made it again.",
]
WAKE = [{"cron": "0 7 * * 1-5", "timezone": "Europe/Berlin", "say": "Check the backups."}]
keeper = Agent("keeper", scripted(SCRIPT), "Look after the backups.", tools=[list_backups, start_backup], wake=WAKE)


async def live() -> None:
    async with Runtime(HOME, agents=[keeper]):
        await asyncio.Event().wait()


async def rehearse() -> None:
    clock = FixedClock(datetime(2040, 1, 2, 5, 59, tzinfo=UTC))  # a Monday, one minute before seven in Berlin
    async with Runtime(HOME, agents=[keeper], clock=clock) as rt:
        clock.advance(60)
        await rt.settled()
        async with open_store(f"{HOME}/wakeful.db") as store:
            for approval in await store.approvals():
                print(f"asks for {approval.tool} {dict(approval.arguments)}")
                await store.decide(approval.approval_id, Approve(), by="ann")
        await rt.settled()
        for brief in await rt.briefs("keeper"):
            print(f"{brief.kind}: {brief.text}")


if __name__ == "__main__":
    asyncio.run(rehearse() if "rehearse" in sys.argv[1:] else live())
