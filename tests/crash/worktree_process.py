"""A program whose agent works in a worktree and leaves it: `main(folder, work, kind, when)`.

`work` is `work` or `none`: whether the agent leaves something behind. `kind` is the kind of fact at whose commit the
process ends, `before` or `after` it; `-` for none.
"""

import os
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wakeful import Agent, Runtime
from wakeful.contracts.envelope import Fact
from wakeful.ports import Claim
from wakeful.store.sqlite import SqliteStore
from wakeful.testing import FixedClock, scripted
from wakeful.testing.wrapped_store import WrappedStore

HOUR = 3600


class KilledStore(WrappedStore):
    """A store whose process ends at the commit of one kind of fact."""

    def __init__(self, store: Any, kind: str, when: str) -> None:
        super().__init__(store)
        self._kind, self._when = kind, when

    async def admit(self, agent_id: str, facts: Sequence[Fact], **terms: Any) -> Any:
        self._end(facts, "before")
        answer = await super().admit(agent_id, facts, **terms)
        self._end(facts, "after")
        return answer

    async def append(self, claim: Claim, facts: Sequence[Fact], **terms: Any) -> Any:
        self._end(facts, "before")
        answer = await super().append(claim, facts, **terms)
        self._end(facts, "after")
        return answer

    def _end(self, facts: Sequence[Fact], when: str) -> None:
        # What the agent's definition says of its workspace is not what this is about.
        ours = [fact for fact in facts if getattr(fact.event, "used_by", "agent") == "agent"]
        if when == self._when and any(fact.event.kind == self._kind for fact in ours):
            os.kill(os.getpid(), signal.SIGKILL)


def agent(repo: Path, work: str) -> Agent[None, str]:
    def reply(request: Any) -> Any:
        said = next(item.text for item in reversed(request.history) if item.role == "user")
        if "Leave." in said:
            steps = [_call("use_workspace", workspace_id="agent_home"), "left"]
        else:
            begin = _call("use_workspace", path=str(repo), mode="isolated", isolation_label="work")
            steps = [
                begin,
                *([_call("write_file", path="work.txt", content="work\n")] if work == "work" else ()),
                "begun",
            ]
        return steps[request.answered]

    return Agent("dev", scripted(reply), workspace=repo)


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


async def main(folder: Path, work: str, kind: str, when: str) -> None:
    os.environ["WAKEFUL_HOME"] = str(folder / "home")
    clock = FixedClock(datetime(2040, 1, 1, tzinfo=UTC))
    (folder / "home").mkdir(exist_ok=True)
    store = KilledStore(await SqliteStore.open(folder / "home" / "runs.db"), kind, when)
    async with Runtime(agents=[agent(folder / "repo", work)], store=store, clock=clock) as rt:
        for words in ("Begin.", "Leave."):
            await rt.answer(await rt.send("dev", words, key=words))
            await rt.settled()
        for _ in range(3):
            clock.advance(2 * HOUR)
            await rt.settled()
        known = await rt.workspaces("dev")
        states = ",".join(f"{tree.state}:{tree.cleanup_reason}" for tree in known.worktrees)
        sys.stdout.write(f"{known.active_workspace_id} {states}\n")
    await store.close()
