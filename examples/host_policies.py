"""A host with policies and with a tool that its client runs: python examples/host_policies.py

The policy hides one tool from the model and rejects a second refund in one run. The call of `client/confirm` pauses the
run: the request is in the store until the client answers, and the transcript continues with that answer.
"""

import asyncio
from typing import Any

from wakeful.hosts import ConversationLoop, OwnRequestStore, RuntimeToolLifecycle, ToolCall, open_engine

ORDER = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
TOOLS: dict[str, dict[str, Any]] = {
    "shop/refund": {"name": "shop/refund", "source": "shop", "description": "Pays an order back.", "parameters": ORDER},
    "shop/delete": {"name": "shop/delete", "source": "shop", "description": "Deletes an order.", "parameters": ORDER},
    "client/confirm": {"name": "client/confirm", "description": "Asks the person in the app.", "parameters": ORDER},
}
CONTEXT = {"tool_policy": {"deny": ["shop/delete"], "runtime_tools": ["client/confirm"]}}
RULES = [
    {
        "after_tool": "shop/refund",
        "limited_tools": ["shop/refund"],
        "require_one_of": ["client/confirm"],
        "gate_completion": False,
    }
]


class Shop:
    """Runs the tools that are not the client's."""

    def execute(self, call: ToolCall, declaration: Any, context: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "result": f"{call.parameters['order']} is paid back"}


def turn_runner(messages: list[dict[str, Any]], context: dict[str, Any]) -> dict[str, Any]:
    """A model that wants everything at once, and says at the end what it got."""
    results = [message["payload"] for message in messages if message["type"] == "tool_result"]
    if not results:
        wanted = [("shop/delete", "A17"), ("shop/refund", "A17"), ("shop/refund", "A18")]
        return {"tool_calls": [{"name": name, "parameters": {"order": order}} for name, order in wanted]}
    if len(results) == 3:
        return {"tool_calls": [{"name": "client/confirm", "parameters": {"order": "A18"}}]}
    return {"content": f"The person said {results[-1]['result']['answer']}."}


async def main() -> None:
    async with open_engine("shop.db") as engine:
        requests, lifecycle = OwnRequestStore(engine), RuntimeToolLifecycle()
        options = {
            "tool_executor": Shop(),
            "tool_declarations": TOOLS,
            "tool_call_rules": RULES,
            "runtime_tool_request_store": requests,
            "context": CONTEXT,
            "max_turns": 5,
        }
        loop = ConversationLoop(store=engine.store)
        paused = await loop.run([{"role": "user", "content": "Clean up."}], turn_runner, options)
        for each in paused.tool_execution_results:
            print(f"{each['tool_name']} {each['parameters']['order']}: {each['result'].get('error', 'done')}")
        print(f"status: {paused.status}")

        (waiting,) = await lifecycle.recent_pending_requests(requests)
        answer = {"request_id": waiting.request_id, "result": {"answer": f"yes to {waiting.parameters['order']}"}}
        ended = await lifecycle.submit_result(requests, answer)
        done = await loop.run([*paused.messages, ended["tool_result_message"]], turn_runner, options)
        print(f"{done.final_content} status: {done.run_outcome.status}")


asyncio.run(main())
