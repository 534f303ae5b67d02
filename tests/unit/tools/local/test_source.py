"""The tools of a workspace are made once, however many ask for them at the same moment."""

import asyncio
from pathlib import Path

from wakeful.tools.local.source import LocalTools


async def test_two_turns_that_begin_at_once_are_given_the_same_tools(tmp_path: Path) -> None:
    """Each set of tools has a sandbox, and only one of them would be closed: what it put into the workspace for the
    time of its commands would stay there."""
    tools = LocalTools(tmp_path, "coding")
    first, second = await asyncio.gather(tools.offer(), tools.offer())
    assert [id(each) for each in first.tools] == [id(each) for each in second.tools]
    await tools.close()
