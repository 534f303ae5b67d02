"""Tool objects of other frameworks, with the real packages: same words, same schema, failures that are failures."""

import sys
from typing import Any

import pytest

from wakeful import Agent, ToolRetry, run, tool
from wakeful.contracts.content import Image, Text
from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.testing import scripted
from wakeful.tools.context import RunContext
from wakeful.tools.schema import ArgumentsRefused

SCHEMA = {"a": {"type": "integer"}, "b": {"type": "integer"}}


def needs(package: str) -> Any:
    return pytest.importorskip(package, reason=f"needs {package}, which is not installed; run: make foreign")


def properties(made: Any) -> dict[str, Any]:
    found = made.declaration.input_schema["properties"]
    return {name: {"type": inner["type"]} for name, inner in found.items()}


async def asked(made: Any, deps: Any = None, **arguments: Any) -> Any:
    return await made.invoke(RunContext(deps, call_id="c1"), arguments)


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_of_langchain(is_async: bool) -> None:
    library = needs("langchain_core.tools")
    if is_async:

        @library.tool
        async def add(a: int, b: int) -> int:
            """Add two numbers."""
            if b == 0:
                raise library.ToolException("no zero")
            return a + b
    else:

        @library.tool
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            if b == 0:
                raise library.ToolException("no zero")
            return a + b

    add.handle_tool_error = "All is well."
    made = tool(add)
    assert (made.name, made.declaration.description, made.declaration.effect) == (
        "add",
        "Add two numbers.",
        "irreversible",
    )
    assert properties(made) == SCHEMA
    assert await asked(made, a=1, b=2) == 3
    with pytest.raises(library.ToolException, match="no zero"):
        await asked(made, a=1, b=0)
    assert await add.ainvoke({"a": 1, "b": 0}) == "All is well."  # the object itself is as it was


async def test_a_class_of_ones_own_that_is_a_tool_of_langchain() -> None:
    library = needs("langchain_core.tools")

    class Shout(library.BaseTool):  # type: ignore[misc]
        name: str = "shout"
        description: str = "Says it louder."

        def _run(self, text: str) -> str:
            return text.upper()

    assert await asked(tool(Shout(), effect="pure"), text="hi") == "HI"


async def test_a_tool_of_pydantic_ai() -> None:
    library = needs("pydantic_ai")

    async def add(ctx: library.RunContext[int], a: int, b: int) -> int:  # type: ignore[name-defined]
        """Add two numbers."""
        if b == 0:
            raise library.ModelRetry("not zero")
        return a + b + ctx.deps

    add.__annotations__["ctx"] = library.RunContext[int]
    made = tool(library.Tool(add), effect="keyed")
    assert (made.name, made.declaration.description, made.declaration.effect) == ("add", "Add two numbers.", "keyed")
    assert properties(made) == SCHEMA
    assert await asked(made, deps=10, a=1, b=2) == 13
    with pytest.raises(ToolRetry, match="not zero"):
        await asked(made, deps=10, a=1, b=0)
    with pytest.raises(ArgumentsRefused, match="b: Field required"):
        await asked(made, deps=10, a=1)
    with pytest.raises(InvalidConfig, match="an approval of its own"):
        tool(library.Tool(add, requires_approval=True))


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_of_openai_agents_that_raises_has_failed(is_async: bool) -> None:
    library = needs("agents")
    if is_async:

        @library.function_tool
        async def add(a: int, b: int) -> int:
            """Add two numbers."""
            if b == 0:
                raise ValueError("no zero")
            return a + b
    else:

        @library.function_tool
        def add(a: int, b: int) -> int:
            """Add two numbers."""
            if b == 0:
                raise ValueError("no zero")
            return a + b

    made = tool(add)
    assert (made.name, made.declaration.description) == ("add", "Add two numbers.")
    assert properties(made) == SCHEMA
    assert await asked(made, a=1, b=2) == 3
    with pytest.raises(ValueError, match="no zero"):
        await asked(made, a=1, b=0)


async def test_a_tool_of_openai_agents_with_an_approval_is_refused() -> None:
    library = needs("agents")
    with pytest.raises(InvalidConfig, match="an approval of its own"):
        tool(library.function_tool(lambda: 1, name_override="pay", needs_approval=True))


async def test_a_tool_of_the_claude_sdk() -> None:
    library = needs("claude_agent_sdk")

    @library.tool("add", "Add two numbers.", {"a": int, "b": int})
    async def add(arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments["b"] == 0:
            return {"content": [{"type": "text", "text": "no zero"}], "is_error": True}
        if arguments["b"] == 1:
            return {
                "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                ]
            }
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}

    made = tool(add)
    assert (made.name, made.declaration.description) == ("add", "Add two numbers.")
    assert properties(made) == SCHEMA
    assert made.declaration.input_schema["required"] == ["a", "b"]
    assert await asked(made, a=1, b=2) == "3"
    assert await asked(made, a=1, b=1) == [Text("look"), Image(data=b"hi", media_type="image/png")]
    with pytest.raises(ToolReported, match="no zero"):
        await asked(made, a=1, b=0)


async def test_a_failure_of_a_foreign_tool_is_a_failure_in_the_log() -> None:
    library = needs("agents")

    @library.function_tool
    def pay(cents: int) -> str:
        """Pay."""
        raise ValueError("no money")

    model = scripted([{"calls": [{"name": "pay", "arguments": {"cents": 5}}]}, "It did not work."])
    result = await run(Agent("clerk", model, tools=[tool(pay)]), "pay")
    assert result.output == "It did not work."
    (call,) = result.calls()
    assert call.status == "error"
    assert "no money" in str(call)


def test_recognising_an_object_imports_no_framework() -> None:
    before = {"langchain_core", "pydantic_ai", "agents", "claude_agent_sdk"} & set(sys.modules)
    tool(lambda: 1, name="one")
    assert {"langchain_core", "pydantic_ai", "agents", "claude_agent_sdk"} & set(sys.modules) == before
