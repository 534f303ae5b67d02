"""The ability `agents/chat`: a message to an agent, answered by whoever says that it answers chats.

A handler comes from the hook `chat_handler`, in the same way as one for a task. The built-in one runs an agent of this
host; its conversation is as durable as any, and belongs to whoever began it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field

from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.contracts.tools import Principal
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.hosts.abilities.registry import Abilities, Ability
from wakeful.hosts.agent_registry import AgentRegistry, RegisteredAgent
from wakeful.hosts.chat.turns import check_owner
from wakeful.hosts.host_calls import awaited
from wakeful.hosts.run_access import RunRefused, failure_of, owner_of, principal_id
from wakeful.service.commands.turns import run_turn
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks

NO_HANDLER = "chat_no_handler"
INVALID_INPUT = "chat_invalid_input"
INVALID_RESULT = "chat_invalid_result"
HANDLER_FAILED = "chat_handler_failed"
MAX_TURNS = 12
"""So many rounds an agent gets for one message, unless the message or the agent says otherwise."""


class ChatInput(Value):
    """A message."""

    agent: str = Field(min_length=1)
    message: str = Field(min_length=1)
    session_id: str = Field(min_length=1)
    max_turns: int | None = Field(None, ge=1)
    client_context: JsonDict = {}
    metadata: JsonDict = {}


class ChatAbility:
    """Chats of one host. `caller` says who asks now."""

    def __init__(
        self,
        engine: Engine,
        agents: AgentRegistry,
        caller: Callable[[], ExecutionPrincipal | None],
        *,
        hooks: HookRegistry = default_hooks,
    ) -> None:
        self._engine = engine
        self._agents = agents
        self._caller = caller
        self._hooks = hooks

    def register(self, abilities: Abilities) -> None:
        abilities.register(
            Ability(
                "agents/chat",
                self._chat,
                lambda given: self._caller() is not None,
                "Say something to an agent.",
                category="chat",
                annotations={"destructive": True, "idempotent": False},
            )
        )

    async def _chat(self, given: Any) -> dict[str, Any]:
        fields = dict(given) if isinstance(given, Mapping) else given
        if isinstance(fields, dict) and not fields.get("session_id"):
            fields["session_id"] = self._engine.ids.new("chat_session")
        message = validated(ChatInput, fields, INVALID_INPUT)
        try:
            handler = await self._handler(message)
            if handler is None:
                raise RunRefused(NO_HANDLER, f"no handler answers for the agent {message.agent!r}")
            said = await awaited(handler(message))
            if isinstance(said, Exception):
                raise said
        except Exception as error:
            raise RunRefused(*failure_of(error, HANDLER_FAILED), getattr(error, "hint", "")) from error
        if not isinstance(said, Mapping):
            raise RunRefused(INVALID_RESULT, f"expected an object, not a {type(said).__name__}")
        return {**said, "session_id": message.session_id, "agent": message.agent}

    async def _handler(self, message: ChatInput) -> Callable[[ChatInput], Any] | None:
        found = await self._hooks.resolve("chat_handler", message)
        if found is not None:
            return found if callable(found) else None
        registered = await self._agents.get(message.agent)
        if registered is None:
            return None
        return lambda given: self._answer(registered, given)

    async def _answer(self, registered: RegisteredAgent, given: ChatInput) -> dict[str, Any]:
        speaker = principal_id(owner_of(self._caller()))
        agent = registered.agent
        await check_owner(self._engine, agent.name, given.session_id, speaker)
        rounds = given.max_turns or agent.max_steps or MAX_TURNS
        request = RunRequest(
            agent.changed(max_steps=rounds),
            given.message,
            principal=Principal(id=speaker) if speaker is not None else None,
            thread=given.session_id,
        )
        result = await run_turn(self._engine, request)
        return {
            "reply": result.final_content,
            "completed": result.completed,
            "status": result.status,
            "stop_reason": result.stop_reason,
            "turn_id": result.turn_id,
            "turn_count": result.turn_count,
        }
