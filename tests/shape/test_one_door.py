"""One door to the tools: what begins them is called from one place, with what only the gate makes."""

from pathlib import Path

import pytest

from kit.gates.tool_starters import check_one_door


def test_tools_are_begun_at_one_door(root: Path) -> None:
    check_one_door(root)


@pytest.mark.parametrize(
    "offence",
    [
        "async def go(tool, ctx):\n    return await tool.start(ctx, {}).result",
        "async def go(tool, ctx):\n    return await tool.invoke(ctx, {})",
        "def go(tool, given):\n    return tool.start(*given)",
        "def go(tool, given):\n    return tool.start(**given)",
        "def go(tool):\n    return spawn(tool.start)",
        "def go(tool, ctx):\n    return Tool.start(tool, ctx, {})",
        "def go(tool):\n    begin = tool.start\n    return begin",
        "def go(tool):\n    return getattr(tool, 'start')",
        "def go(tool, ctx):\n    return tool.start(ctx=ctx, arguments={})",
        "def go(at, tool):\n    at.tool = tool",
        "def go(at, tool):\n    at.tool, at.attempt = tool, 1",
        "def go(at, tool):\n    setattr(at, 'tool', tool)",
        "def go(at):\n    return gate.Admission([], at)",
        "def go(at):\n    return Admission([], dispatch=at)",
        "def go(given):\n    return Admission(*given)",
        "def go(at):\n    return RunningCall(at, None, None)",
        "from wakeful.tools.call_runner import begin",
        "def go(executor, call):\n    return in_its_place(executor.execute, call)",
    ],
)
def test_a_second_door_is_found(tmp_path: Path, offence: str) -> None:
    """The inversion: each way round the gate, in a module of its own."""
    for package in ("gate", "engine", "tools", "hosts/tools", "service"):
        (tmp_path / "src" / "wakeful" / package).mkdir(parents=True)
    package = tmp_path / "src" / "wakeful"
    (package / "gate/running_call.py").write_text("def launch(at, ctx):\n    at.tool.start(ctx, {})\n")
    (package / "gate/preparation.py").write_text("at.tool = found\n")
    (package / "gate/passage.py").write_text("Admission([], at)\nAdmission([])\n")
    (package / "gate/answered_calls.py").write_text("Admission([], at)\n")
    (package / "engine/calls.py").write_text("RunningCall()\n")
    (package / "tools/tool.py").write_text(
        "from wakeful.tools.call_runner import begin\n\nclass Tool:\n    def invoke(self, c, a):\n"
        "        self.start(c, a)\n"
    )
    (package / "hosts/tools/tool_execution.py").write_text("ask(executor.execute)\n")
    (package / "service/quiet.py").write_text("thread.start()\nfor hunk in hunks:\n    assert hunk.start < 3\n")
    check_one_door(tmp_path)
    (package / "service/loud.py").write_text(offence)
    with pytest.raises(AssertionError):
        check_one_door(tmp_path)
