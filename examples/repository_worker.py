"""An agent that works on a repository for days: in a worktree of its own, with restarts in between.

    python examples/repository_worker.py        # three days on a clock of its own; each day is another runtime

The repository itself stays as it is until somebody merges the branch. Killed at any moment, the agent goes on in the
same worktree. For a real model put `"anthropic:claude-haiku-4-5"` in the place of `scripted(...)`.
"""

import asyncio
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wakeful import Agent, Runtime
from wakeful.testing import FixedClock, scripted

HOME, REPO = Path("worker-home"), Path("shop")
SAVE = "git add -A && git -c user.name=worker -c user.email=worker@example.com commit -q -m 'Day {}'"


def work(request: Any) -> Any:
    """Each day a file and a commit."""
    day = sum(item.role == "user" for item in request.history)
    steps = [
        {"calls": [{"name": "write_file", "arguments": {"path": f"day-{day}.md", "content": "Some work.\n"}}]},
        {"calls": [{"name": "exec_command", "arguments": {"cmd": SAVE.format(day)}}]},
        f"Day {day} is done.",
    ]
    return steps[request.answered]


def git(line: str) -> str:
    return subprocess.run(f"git {line}", shell=True, cwd=REPO, check=True, capture_output=True, text=True).stdout


def begin() -> None:
    REPO.mkdir(exist_ok=True)
    git("init -q -b main && git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m begin")


async def main() -> None:
    begin()
    worker = Agent("worker", scripted(work), "Improve the shop, a little every day.", workspace=REPO)
    for day in (1, 2, 3):
        clock = FixedClock(datetime(2040, 1, day, 9, tzinfo=UTC))
        async with Runtime(HOME, agents=[worker], clock=clock) as rt:
            if day == 1:
                await rt.use_workspace("worker", REPO, mode="isolated", label="improvements")
            print((await rt.answer(await rt.send("worker", "Go on.", key=f"day-{day}"))).output)
            session = (await rt.workspaces("worker")).worktree_session
    assert session is not None
    git(f"merge -q {session.worktree_branch}")
    async with Runtime(HOME, agents=[worker], clock=clock) as rt:
        await rt.use_workspace("worker", workspace_id="agent_home")  # the branch is merged: nothing is lost
        await rt.settled()
        left = (await rt.workspaces("worker")).worktrees
        print(f"{git('ls-files').count('day-')} days are merged, {len(left)} left")


if __name__ == "__main__":
    asyncio.run(main())
