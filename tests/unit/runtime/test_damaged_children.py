"""A child whose log is not what was written: its parent is told, and people see it. A child that is done is quiet."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

from wakeful import Agent, Budget, Runtime, tool
from wakeful.service.queries.overview import overview
from wakeful.service.queries.subject_stories import restless_agents
from wakeful.testing import scripted


def parent(digging: asyncio.Event, *, hangs: bool) -> Agent[None, str]:
    @tool(effect="pure")
    async def dig() -> str:
        """Dig."""
        digging.set()
        if hangs:
            await asyncio.Event().wait()
        return "dug"

    def reply(asked: Any) -> Any:
        if "dig:" in asked.history[0].text:
            return "a hole" if asked.answered else {"calls": [{"name": "dig", "arguments": {}}]}
        if "Task task_" in asked.history[-1].text:
            return f"told: {asked.history[-1].text}"
        spawn = {"initial_message": "dig:1", "budget": {"model_calls": 5}}
        return "It digs." if asked.answered else {"calls": [{"name": "spawn_agent", "arguments": spawn}]}

    return Agent("ops", scripted(reply), tools=[dig], spawn=True, budget=Budget(model_calls=20))


def damage_newest_event_of_child(database: Path) -> None:
    connection = sqlite3.connect(database)
    (child,) = connection.execute("SELECT id FROM agents WHERE agent_id LIKE 'ops.%'").fetchone()
    newest = "SELECT id, body FROM appends WHERE id >> 40 = ? ORDER BY id DESC"
    row, stored = connection.execute(newest, (child,)).fetchone()
    body = bytearray(stored)
    body[len(body) // 2] ^= 1
    connection.execute("UPDATE appends SET body = ? WHERE id = ?", (bytes(body), row))
    connection.commit()
    connection.close()


async def test_a_parent_is_told_that_the_log_of_its_child_is_damaged(tmp_path: Path) -> None:
    digging = asyncio.Event()
    async with Runtime(tmp_path, agents=[parent(digging, hangs=True)], grace=0) as rt:
        await rt.answer(await rt.send("ops", "Go."))
        await digging.wait()
    damage_newest_event_of_child(tmp_path / "wakeful.db")
    for _ in range(2):  # and it stays so
        async with Runtime(tmp_path, agents=[parent(digging, hangs=False)]) as rt:
            await rt.settled()
            (task,) = await rt.tasks("ops", over=True)
            assert (task.status, "is not what was written" in task.result_summary) == ("failed", True)
            (brief,) = [brief for brief in await rt.briefs("ops") if "Task task_" in brief.text]
            assert "failed" in brief.text
            (child,) = [each for each in await rt.agents(private=True) if each.agent != "ops"]
            assert (child.control, "is not what was written" in child.reason) == ("stopped", True)
            (notice,) = [each for each in await rt.notices() if each.agent == child.agent]
            assert "is not what was written" in notice.text
            (life,) = await restless_agents(rt._here.engine)
            assert (life.agent, life.state) == (child.agent, "broken")
            states = {line.agent: line.state for line in (await overview(rt._here.engine, None)).agents}
            assert states[child.agent] == "broken"


async def test_a_child_that_is_done_is_not_told_of_for_ever(tmp_path: Path) -> None:
    async with Runtime(tmp_path, agents=[parent(asyncio.Event(), hangs=False)]) as rt:
        await rt.answer(await rt.send("ops", "Go."))
        await rt.settled()
        (child,) = [each for each in await rt.agents(private=True) if each.agent != "ops"]
        assert child.control == "stopped"
        assert await restless_agents(rt._here.engine) == []
        assert (await rt.why(child.agent)).state == "stopped"
