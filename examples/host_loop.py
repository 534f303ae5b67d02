"""A host with its own model call and its own tools, without a key: python examples/host_loop.py

`turn_runner` stands for a request to any model; here its answers are played. The loop validates each call, has it run
by the host's executor, and puts the result into the transcript of the next turn.
"""

import asyncio
from typing import Any

from wakeful.hosts import ConversationLoop, RuntimeToolDeclaration, ToolCall

STOCK = {"tea": 12, "coffee": 0}
TOOLS = {
    "shop/stock": {
        "name": "shop/stock",
        "source": "shop",
        "description": "How much of an item is left.",
        "parameters": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
    }
}


class Shop:
    """Runs the tools."""

    def execute(self, call: ToolCall, declaration: RuntimeToolDeclaration, context: dict[str, Any]) -> dict[str, Any]:
        item = call.parameters["item"]
        if item not in STOCK:
            return {"success": False, "error": f"there is no item {item!r}"}
        return {"success": True, "result": {"item": item, "left": STOCK[item]}}


def turn_runner(messages: list[dict[str, Any]], context: dict[str, Any]) -> dict[str, Any]:
    """One reply of the model, with the transcript so far."""
    results = [message["payload"] for message in messages if message["type"] == "tool_result"]
    if not results:
        calls = [{"name": "shop/stock", "parameters": {"item": item}} for item in ("tea", "coffee", "sand")]
        return {"content": "Let me look.", "tool_calls": calls}
    known = [each["result"] for each in results if each["success"]]
    return {"content": ", ".join(f"{each['left']} of {each['item']}" for each in known)}


async def main() -> None:
    options = {"tool_executor": Shop(), "tool_declarations": TOOLS, "max_turns": 5}
    loop = ConversationLoop(store="shop.db")
    result = await loop.run([{"role": "user", "content": "What is left?"}], turn_runner, options)
    print(result.final_content)
    for each in result.tool_execution_results:
        print(f"  {each['tool_name']} {each['parameters']['item']}: {each['result']['success']}")
    print(f"completed: {result.completed}, after {result.turn_count} turns")


asyncio.run(main())
