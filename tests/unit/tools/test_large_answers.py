"""Tools whose answers can be long cut them by themselves, before the cap that holds for every result."""

from pathlib import Path
from typing import Any

import pytest

from kit.mcp_peers.asking import Odd
from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent, run, tool
from wakeful.contracts.budgets import MAX_TOOL_RESULT_BYTES
from wakeful.contracts.events import ToolResult
from wakeful.ports import ModelRequest
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.tools.results import MAX_SHOWN_BYTES

LONG = 120_000
COUNTING = {"cmd": f"head -c {LONG} /dev/zero | tr '\\0' x", "login": False}


async def yes(_: Any) -> bool:
    return True


@pytest.mark.spec("LOOP-COST-03")
@pytest.mark.parametrize(
    ("name", "arguments", "most"),
    [
        ("mcp.odd/reads", {"text": "x" * LONG}, 20_000),  # browsers and searches are tools of servers
        ("wakeful/read_file", {"path": "long.txt"}, 20_000 + 200),
        ("wakeful/exec_command", COUNTING, MAX_SHOWN_BYTES),
        ("wakeful/exec_command", {**COUNTING, "max_output_tokens": 64_000}, MAX_TOOL_RESULT_BYTES - 1),
        ("wakeful/exec_command_batch", {"items": [COUNTING] * 3}, MAX_SHOWN_BYTES),
    ],
)
async def test_a_tool_with_large_answers_cuts_them_below_the_general_cap(
    name: str, arguments: dict[str, Any], most: int, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "long.txt").write_text("word word word\n" * (LONG // 15))
    store, shown = MemoryStore(), [""]

    def answer(request: ModelRequest) -> Any:
        shown[0] = list(request.history)[-1].text
        return "done" if request.answered else calls((name, arguments))

    source = Odd(tmp_path, "well", classes={"*": "safe"}).source
    agent = Agent("any", scripted(answer), tools=[source], workspace=work, profile="coding")
    try:
        result = await run(agent, "go", store=store, approver=yes)
    finally:
        await source.close()
    (ended,) = of_kind(result, ToolResult)
    size = len(shown[0].encode())
    assert 3_000 < size <= most < MAX_TOOL_RESULT_BYTES, "by its own measure, and not by the one for all"
    if name.startswith("mcp."):
        (whole,) = ended.artifact_refs
        assert (await store.get_blob(whole)).decode() == f"reads: {'x' * LONG}", "nothing of it is lost"
    else:
        assert "[cut here:" not in shown[0], "nothing was left for the general cap"


async def test_another_tools_answer_is_cut_by_the_general_cap_alone() -> None:
    @tool(effect="pure")
    def talk() -> str:
        """Talk."""
        return "x" * LONG

    result = await run(Agent("any", scripted([calls("talk"), "done"]), tools=[talk]), "go")
    (ended,) = of_kind(result, ToolResult)
    assert len(ended.item.text.encode()) == MAX_SHOWN_BYTES
