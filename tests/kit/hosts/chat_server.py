"""A chat server without its sockets: an agent, a store, a model that is played, and clients that keep what they get."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from kit.runs.engine_runs import calls
from wakeful import Agent, RunResult
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.events import TurnStarted
from wakeful.engine.state_loader import load_config
from wakeful.engine.workflow_parts import workflow_registry
from wakeful.engine.workflow_registry import WorkflowRegistry
from wakeful.hosts.chat.client_bridge import ClientBridge
from wakeful.hosts.chat.messages import answer_message
from wakeful.hosts.chat.turns import return_to_turn
from wakeful.ports import Model, ModelRequest, Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.views.chat_messages import ClientToolCall
from wakeful.views.wire_messages import WireMessage

EDITOR = {"kind": "editor", "workflow_id": "wf_open"}
Reply = Callable[[ModelRequest], object]


def played(*steps: Any) -> Reply:
    """One step for each reply of the turn itself."""

    def reply(request: ModelRequest) -> object:
        said = 0
        for item in request.history:
            said = 0 if item.role == "user" and item.origin == "person" else said + (item.role == "assistant")
        return steps[min(said, len(steps) - 1)]

    return reply


def designing(*drafts: str, then: Reply) -> Reply:
    """The same, in which the child that draws a workflow gives these drafts, one after the other."""

    def reply(request: ModelRequest) -> object:
        if "You design a workflow" not in request.instructions:
            return then(request)
        rejected = sum(1 for item in request.history if item.role == "user") - 1
        return drafts[min(rejected, len(drafts) - 1)]

    return reply


BUILDING = played(calls(("build_workflow", {"objective": "Weigh order A."})), "There it is.")


class Server:
    """What is the same for every client."""

    def __init__(self, store: Store, agent: Agent[Any, Any], reply: Reply) -> None:
        self.store = store
        self.agent = agent
        self.asked: list[ModelRequest] = []
        self.model: Model = ScriptedModel(self._noting(reply))
        self.engine = replace(new_engine(store), resolve_model=lambda choice: self.model)
        self.registry: WorkflowRegistry | None = None

    def _noting(self, reply: Reply) -> Callable[[ModelRequest], object]:
        def noted(request: ModelRequest) -> object:
            self.asked.append(request)
            return reply(request)

        return noted

    async def with_registry(self) -> "Server":
        self.registry = await workflow_registry(self.engine, self.agent)
        return self

    async def offered(self, result: RunResult[Any]) -> set[str]:
        """The tools that the turn's model was shown."""
        (started,) = (one.fact.event for one in result.facts() if isinstance(one.fact.event, TurnStarted))
        return {tool.name for tool in (await load_config(self.store, started.config_ref.digest)).tools}


class Client:
    """One connection. It answers the calls of its own tools with what `run` gives, when there is one."""

    def __init__(self, server: Server, *manifest: Any, run: Callable[[ClientToolCall], Any] | None = None) -> None:
        self.server = server
        self.sent: list[WireMessage] = []
        self.frames: list[ClientToolCall] = []
        self.called = asyncio.Event()
        self.bridge = ClientBridge(server.engine, self._called, manifest)
        self.counted: list[bool] = []
        self._run = run
        self._answering: set[asyncio.Task[None]] = set()

    def _called(self, frame: ClientToolCall) -> None:
        self.frames.append(frame)
        self.called.set()
        if self._run is not None:
            task = asyncio.create_task(self._answer(frame))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, frame: ClientToolCall) -> None:
        assert self._run is not None
        answer = {"type": "client_tool_result", "request_id": frame.request_id, **self._run(frame)}
        self.counted.append(await self.bridge.take(answer))

    async def say(self, content: str = "Hello", by: str = "ann", **fields: Any) -> RunResult[Any]:
        message = {"thread_id": "t1", "content": content, "provider": "scripted", "model": "played", **fields}
        return await answer_message(
            self.server.engine,
            self.server.agent,
            message,
            user_id=by,
            send_message=self.sent.append,
            registry=self.server.registry,
            bridge=self.bridge,
        )

    async def come_back(self, turn_id: str, by: str = "ann", after_seq: int = 0) -> RunResult[Any]:
        server = self.server
        return await return_to_turn(
            server.engine,
            server.agent,
            turn_id,
            user_id=by,
            send_message=self.sent.append,
            after_seq=after_seq,
            registry=server.registry,
            bridge=self.bridge,
        )

    def types(self) -> list[str]:
        """What kinds of messages came, each run of chunks as one."""
        kinds = [one.type for one in self.sent]
        return [kind for at, kind in enumerate(kinds) if kind != "chunk" or kinds[at - 1 : at] != ["chunk"]]


def place(folder: Path) -> str:
    return str(folder / "chat.db")
