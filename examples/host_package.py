"""A package: agents that come in a bundle, and a run of it: python examples/host_package.py

A bundle brings words and names, and no code: its tools are found among those that the host supplies. What running a
package means is the host's to say; here its one workflow hands the input to the agent that was imported.
"""

import asyncio
from typing import Any

from wakeful import tool
from wakeful.hosts import CapabilityCeiling, ExecutionPrincipal, hooks, open_host

BUNDLE = {
    "agent": {"agent_slug": "clerk", "model": "scripted:demo", "instructions": "Be brief.", "tools": ["stock"]},
    "package_slug": "shop",
    "package_version": "2.0",
}
MANAGER = ExecutionPrincipal.user_session(
    "ann", "support", capability_ceiling=CapabilityCeiling(allowed=("manage_runs",))
)


@tool(effect="pure")
def stock(item: str) -> int:
    """How much of an item is left."""
    return {"tea": 12}.get(item, 0)


async def main() -> None:
    async with open_host("shop.db", principal=MANAGER, tools=[stock]) as host:
        (imported,) = await host.bundles.import_all([{"bundle": BUNDLE}])
        print(f"imported {imported['agent_slug']}: {imported['success']}")

        async def ask_the_clerk(request: dict[str, Any]) -> dict[str, Any]:
            task = {"id": "question", "instructions": request["input"]["question"]}
            done = await host.dispatcher.run({"task": task, "metadata": {"agent": "clerk"}}, MANAGER)
            return {"status": done.status, "result": {"answer": done.output}}

        hooks.register("runtime_package_run_handler", lambda found, request, raw: ask_the_clerk)
        asked = {"package": {"slug": "shop"}, "workflow": {"id": "ask"}, "input": {"question": "What is left?"}}
        run = await host.abilities.call("agents/run_runtime_package", asked)
        print(f"{run['status']}: {run['result']['answer'].splitlines()[0]}")
        events = await host.abilities.call("agents/list_runtime_package_run_events", {"run_id": run["run_id"]})
        print([each["event"] for each in events["events"]])


asyncio.run(main())
