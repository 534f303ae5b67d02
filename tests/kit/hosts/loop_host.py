"""A host of the conversation loop, in memory: it plays turns from a list, runs tools, and hears events."""

from typing import Any

from wakeful.hosts import ConversationLoop
from wakeful.hosts.loop.conversation_result import ConversationResult
from wakeful.service.hooks import HookRegistry
from wakeful.store.memory import MemoryStore

SEARCH: dict[str, Any] = {
    "name": "ability/search",
    "source": "abilities",
    "description": "Finds things.",
    "parameters": {
        "type": "object",
        "properties": {"q": {"type": "string"}, "api_key": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["q"],
    },
    "runtime": {"completion_signal": "progress"},
}
CLIENTS: dict[str, Any] = {"tool_policy": {"runtime_tools": ["client/*"]}}
"""The context of a run whose host lets its client's tools in."""
CLOCK: dict[str, Any] = {"name": "ability/clock", "source": "static", "description": "Tells the time."}


class Host:
    """Everything a host brings, and what it saw."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.seen: list[list[dict[str, Any]]] = []
        self.contexts: list[dict[str, Any]] = []
        self.calls: list[Any] = []
        self.declared: list[Any] = []
        self.call_contexts: list[dict[str, Any]] = []
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}
        self.store = MemoryStore()
        self.hooks = HookRegistry(find=list)

    def turn_runner(self, messages: list[dict[str, Any]], context: dict[str, Any]) -> Any:
        self.seen.append(messages)
        self.contexts.append(context)
        turn = self.turns.pop(0)
        if isinstance(turn, Exception):
            raise turn
        return turn(messages, context) if callable(turn) else turn

    def execute(self, call: Any, declaration: Any, context: dict[str, Any]) -> Any:
        self.calls.append(call)
        self.declared.append(declaration)
        self.call_contexts.append(context)
        answer = self.answers.get(call.parameters.get("q", ""), {"success": True, "result": {"n": len(self.calls)}})
        if isinstance(answer, Exception):
            raise answer
        return answer

    def on_event(self, name: str, payload: dict[str, Any]) -> None:
        self.told.append((name, payload))

    @property
    def wire(self) -> list[dict[str, Any]]:
        """The transcript the turn runner saw last."""
        return self.seen[-1]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.told]

    def payloads(self, name: str) -> list[dict[str, Any]]:
        return [payload for told, payload in self.told if told == name]

    @property
    def loop(self) -> ConversationLoop:
        return self.loop_with()

    def loop_with(self, **made_with: Any) -> ConversationLoop:
        return ConversationLoop(store=self.store, hooks=self.hooks, **made_with)

    async def run(self, messages: Any = None, *, loop: Any = None, **options: Any) -> ConversationResult:
        """`loop` is what the loop itself is made with."""
        given = [{"role": "user", "content": "hello"}] if messages is None else messages
        return await self.loop_with(**(loop or {})).run(given, self.turn_runner, {"on_event": self.on_event, **options})

    async def mediated(self, messages: Any = None, **options: Any) -> ConversationResult:
        """With this host's executor and its search tool."""
        tools = {"ability/search": SEARCH, "ability/clock": CLOCK}
        return await self.run(
            messages, **{"tool_executor": self, "tool_declarations": tools, "max_turns": 5, **options}
        )

    async def log(self) -> list[Any]:
        """Every fact of the run."""
        (agent_id,) = await self.store.agents()
        return await self.store.read(agent_id)


def search(q: str = "x", **more: Any) -> dict[str, Any]:
    """A turn's call of the search tool."""
    call_id = more.pop("id", None)
    call = {"name": "ability/search", "parameters": {"q": q, **more}}
    return {**call, "id": call_id} if call_id else call


def calling(*calls: Any, content: str = "") -> dict[str, Any]:
    """A turn that calls tools."""
    return {"content": content, "tool_calls": list(calls)}
