"""Triggers of agents, for people and programs: make one, rotate it, revoke it, see its address, list them.

An agent gets the address at which a program outside wakes it by a tool, and that it did is on record.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from wakeful.contracts.errors import ForTheCaller, ToolReported, TriggerNotFound
from wakeful.contracts.tools import ToolError
from wakeful.contracts.triggers import Signature
from wakeful.engine.run_request import Engine
from wakeful.ports import Store
from wakeful.ports.triggers import TRIGGERS, TriggerRow
from wakeful.runtime import triggers
from wakeful.runtime.triggers import TriggerTerms, give_url, trigger_named
from wakeful.service.commands.agents import agent_named
from wakeful.service.queries.record_names import meant_row
from wakeful.tools.context import RunContext
from wakeful.tools.decorator import tool
from wakeful.tools.tool import Tool
from wakeful.views.trigger_records import TriggerCapability, TriggerRecord

CountRefusals: TypeAlias = Callable[[str, str | None], Awaitable[dict[str, int]]]
"""From an agent and a trigger to what was refused, by reason."""
URL_TOOL = "wakeful/trigger_url"
SECRET_WORDS = (
    "A program that has trigger_url can wake you. Do not repeat, store or forward it, unless your task is to configure "
    "a program outside to wake you."
)
GiveUrl: TypeAlias = Callable[[str, str, str, str], Awaitable[dict[str, Any]]]
"""From agent, turn, trigger's name and purpose to what the model is told."""


async def create_trigger(
    engine: Engine,
    refused: CountRefusals,
    agent: str,
    name: str = "",
    *,
    say: str = "",
    thread: str = "main",
    signature: Signature | None = None,
    signing_env: str | None = None,
    by: str = "program",
) -> TriggerRecord:
    """Raises AgentNotFound, or InvalidRequest for terms that do not go together or a name that is taken."""
    await agent_named(engine.store, agent)
    terms = TriggerTerms(name, say, thread, signature, signing_env, by)
    return await _record(refused, await triggers.create_trigger(engine, agent, terms))


async def rotate_trigger(
    engine: Engine, refused: CountRefusals, named: str, *, by: str, reason: str = ""
) -> TriggerRecord:
    row = await triggers.rotate_trigger(engine, await _named(engine, named), by=by, reason=reason)
    return await _record(refused, row)


async def revoke_trigger(
    engine: Engine, refused: CountRefusals, named: str, *, by: str, reason: str = ""
) -> TriggerRecord:
    row = await triggers.revoke_trigger(engine, await _named(engine, named), by=by, reason=reason)
    return await _record(refused, row)


async def list_triggers(store: Store, refused: CountRefusals, agent: str | None = None) -> list[TriggerRecord]:
    """Of an agent or of all, by agent and name. Raises AgentNotFound."""
    if agent is not None:
        await agent_named(store, agent)
    found = [await _record(refused, row) for row in await store.triggers(agent)]
    return sorted(found, key=lambda each: (each.target_agent_id, each.name, each.external_trigger_id))


async def trigger_url(
    engine: Engine, named: str, *, to: str, base: str = "", turn_id: str | None = None, purpose: str = ""
) -> TriggerCapability:
    """The address of a trigger; that somebody was given it is on record."""
    row = await _named(engine, named)
    return await give_url(engine, row, to=to, base=base, turn_id=turn_id, purpose=purpose)


def trigger_tools(engine: Engine, base: str) -> tuple[Tool[Any], ...]:
    """What agents of a runtime are given that programs outside can reach: the tool that says where."""
    if not base:
        return ()

    async def give(agent: str, turn_id: str, name: str, purpose: str) -> dict[str, Any]:
        named = f"{agent}/{name}" if name else agent
        found = await trigger_url(engine, named, to="agent", base=base, turn_id=turn_id, purpose=purpose)
        return found.model_dump(mode="json")

    return (trigger_url_tool(give),)


def trigger_url_tool(give: GiveUrl) -> Tool[Any]:
    """The tool of one runtime. No tool creates, rotates or revokes a trigger: people do."""

    async def trigger_url(ctx: RunContext[Any], purpose: str, name: str = "") -> dict[str, Any]:
        """Get the secret address at which a program outside can wake you. Each call is recorded.

        Args:
            purpose: Which program gets the address, and what it is to tell you.
            name: One of your named triggers. Leave it out for your default one.
        """
        try:
            return {**await give(ctx.agent, ctx.turn_id, name, purpose), "warning": SECRET_WORDS}
        except ForTheCaller as problem:
            error = ToolError(kind="unknown_trigger", message=problem.message, recovery_hint=problem.hint)
            raise ToolReported(error) from None

    made: Tool[Any] = tool(
        trigger_url, effect="pure", name=URL_TOOL, reads_private=True, child_safe=False, permission_class="safe"
    )
    return made


async def _named(engine: Engine, named: str) -> TriggerRow:
    """As `trigger_named`, or by enough of the beginning of its id. Raises TriggerNotFound."""
    try:
        return await trigger_named(engine, named)
    except TriggerNotFound:
        row = await meant_row(engine.store, TRIGGERS, named, "trg_", "triggers", TriggerNotFound)
        if row is None:
            raise
        return row


async def _record(refused: CountRefusals, row: TriggerRow) -> TriggerRecord:
    return TriggerRecord(
        external_trigger_id=row.trigger_id,
        target_agent_id=row.agent_id,
        name=row.name,
        delivery_mode=row.mode,
        status=row.state,
        generation=row.generation,
        say=row.say,
        thread=row.thread,
        signature=row.signature,
        signing_env=row.signing_env,
        created_by=row.created_by,
        created_at=row.created_at / 1e6,
        revoked_at=None if row.revoked_at is None else row.revoked_at / 1e6,
        delivery_count=row.deliveries,
        last_delivered_at=None if row.last_delivered_at is None else row.last_delivered_at / 1e6,
        last_delivery=row.last_delivery,
        last_source=row.last_source,
        refused=await refused(row.agent_id, row.trigger_id),
    )
