"""The facts that a turn is taken up with: its beginning, or its recovery.

begins       turn.started, what it rests on, what was looked up; routing; tools; warnings
is taken up  recovery first; the configuration where the code says another one; tools; warnings; routing last
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.budgets import Limits
from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import ToolMissing
from wakeful.contracts.events import (
    AnyEvent,
    ContextResolved,
    ToolCatalogResolved,
    TurnConfigChanged,
    TurnStarted,
    TurnSuspended,
    WarningIssued,
)
from wakeful.contracts.tool_catalog import ToolCatalog
from wakeful.contracts.values import unchecked
from wakeful.decisions.policy.catalog import record_once
from wakeful.decisions.routing import RoutingFact
from wakeful.decisions.turn import RULES
from wakeful.engine.context_facts import resolved
from wakeful.engine.prepare.configuration import StoredConfig
from wakeful.engine.prepare.conversation import Conversation
from wakeful.engine.prepare.prompt import TurnMaterial
from wakeful.engine.prepare.retrieval import retrieve
from wakeful.engine.prepare.tools import Belt
from wakeful.engine.prepare.work_items import projected
from wakeful.engine.prepare.workflows import workflow_started
from wakeful.engine.recovery import missing_tools, recovered
from wakeful.engine.run_request import Engine, RunRequest
from wakeful.engine.steps import Steps
from wakeful.engine.turn_facts import KnownFacts
from wakeful.engine.turn_work import TurnWork

_catalog_resolved = unchecked(ToolCatalogResolved)

NO_EFFECT = "no_effect"
"""The code of warnings about what was given and has no effect."""


class StartRecord(NamedTuple):
    """What was found out for a turn, and is to be put on record when it is taken up."""

    conversation: Conversation
    context: TurnMaterial
    belt: Belt
    stored: StoredConfig
    limits: Limits
    routing: Sequence[RoutingFact]
    """Empty when the decision on record stands."""
    warnings: Sequence[str] = ()
    """What was given and has no effect."""


async def start_facts(request: RunRequest, work: TurnWork, record: StartRecord, steps: Steps) -> list[Fact]:
    """The turn's first facts in this process."""
    conversation = record.conversation
    if conversation.folded.started is None:
        return await _begun(request, work, record)
    missing = missing_tools(work)
    if missing:
        await _suspend(work, missing)
    config, before = work.config, conversation.folded.state.config
    facts = await recovered(work, steps)
    catalogued = [*await _cataloged(work, record.belt.catalog), *await _warned(work, record.warnings)]
    if before is not None and config != before:
        ref = await _keep_config(work, record.stored)
        changed = TurnConfigChanged(
            config_ref=ref,
            previous=conversation.folded.started.config_ref.digest,
            changed=config.changes_from(before),
            model_ref=config.model_ref,
            limits=work.state.limits,
        )
        facts.insert(1, work.fact(changed))
        facts[2:2] = [*await _resolved_again(work, record, before, ref), *catalogued]
    else:
        facts[1:1] = catalogued
    # After what was settled: the decision is about requests to come.
    return [*facts, *map(work.fact, record.routing)]


async def _begun(request: RunRequest, work: TurnWork, record: StartRecord) -> list[Fact]:
    agent, config, conversation = request.agent, work.config, record.conversation
    config_ref = await _keep_config(work, record.stored)
    began = time.perf_counter()
    messages = conversation.messages
    started = TurnStarted(
        turn_index=conversation.turn_index,
        message_ids=tuple([message.message_id for message in messages]),
        prompt_preview=messages[0].prompt_preview if work.place.claim.opens else None,
        agent_name=agent.name,
        config_ref=config_ref,
        model_ref=config.model_ref,
        fallbacks=config.fallbacks,
        limits=record.limits,
        stop_rule=request.host.stop_rule,
        structured=config.output_schema is not None,
        window_from=work.place.row.window_from,
        context=dict(work.gate.context),
        principal=messages[0].principal,
        stream=work.terms.stream,
        rules=RULES,
        **({"continuation": request.continuation} if request.continuation is not None else {}),
        **({"revision": request.revision} if request.revision is not None else {}),
    )
    question = "\n".join([message.item.text or message.prompt_preview for message in messages])
    names = messages[0].collections
    knowledge = await retrieve(agent.collections, names, question, lambda text: work.gate.keys().hide_keys(text))
    context = resolved(
        work.place.row,
        work.state,
        config,
        record.context,
        config_ref=config_ref,
        policy_digest=record.belt.policy_digest,
        knowledge=knowledge.items,
        knowledge_tokens=knowledge.tokens,
        memory=record.context.memory.refs,
        omitted=knowledge.omissions,
        missing=(*knowledge.missing, *record.context.memory.missing),
        took_ms=(time.perf_counter() - began) * 1000,
    )
    shown = projected(record.context.work_items)
    memory = record.context.memory
    remembered = memory.projected, memory.recalled.used
    events: list[AnyEvent | None] = [started, context, shown, knowledge.event, *remembered, *record.routing]
    return [
        *[work.fact(event) for event in events if event is not None],
        *await _cataloged(work, record.belt.catalog),
        *await _warned(work, record.warnings),
        *([work.fact(workflow_started(config.workflow))] if config.workflow is not None else ()),
    ]


async def _keep_config(work: TurnWork, stored: StoredConfig) -> BlobRef:
    """Store the configuration, and let the state find it by the digest that facts name."""
    ref = await work.place.store.put_blob(stored.encoded, "application/json")
    work.state.configs = {**work.state.configs, stored.digest: stored.config}
    return ref


def recataloger(engine: Engine, belt: Belt) -> Callable[[TurnWork], Awaitable[list[Fact]]]:
    """Puts the catalogue on record again, when a standing answer that came in the turn has changed it."""

    async def again(work: TurnWork) -> list[Fact]:
        now = engine.clock.now() / 1_000_000
        catalog = belt.catalog_with(await engine.store.rules(work.place.row.agent_name), now)
        return await _cataloged(work, catalog, "standing_answer")

    return again


async def _cataloged(work: TurnWork, catalog: ToolCatalog, reason: str = "turn_resumed") -> list[Fact]:
    """The turn's tools as a fact: once, and again when they changed."""
    if not catalog.entries:
        return []
    known = await work.place.known.all()
    before = [event for entry in known if isinstance(event := entry.fact.event, ToolCatalogResolved)]
    record = record_once(catalog, work.config.tools)
    for data in record.apart:
        await work.place.store.put_blob(data, "application/json")
    ref = await work.place.store.put_blob(record.encoded, "application/json")
    if before and before[-1].catalog_ref.digest == ref.digest:
        return []
    offered = len(catalog.offered)
    event = _catalog_resolved(
        revision=len(before) + 1,
        reason=reason if before else "turn_started",
        catalog_ref=ref,
        offered=offered,
        withheld=len(catalog.entries) - offered,
    )
    return [work.fact(event)]


async def _warned(work: TurnWork, warnings: Sequence[str]) -> list[Fact]:
    """What was given and has no effect in this turn, as facts: each once."""
    if not warnings:
        return []
    events = (entry.fact.event for entry in await work.place.known.all())
    said = {event.message for event in events if isinstance(event, WarningIssued) and event.code == NO_EFFECT}
    new = [words for words in dict.fromkeys(warnings) if words not in said]
    return [work.fact(WarningIssued(code=NO_EFFECT, message=words)) for words in new]


async def _resolved_again(work: TurnWork, record: StartRecord, before: TurnConfig, config_ref: BlobRef) -> list[Fact]:
    """What the turn rests on, where the code that goes on with it says something else than before."""
    if work.config.instructions == before.instructions:
        return []
    event = resolved(
        work.place.row,
        work.state,
        work.config,
        record.context,
        config_ref=config_ref,
        policy_digest=record.belt.policy_digest,
        revision=1 + await _count(work.place.known, ContextResolved),
        before=before,
    )
    return [work.fact(event)]


async def _count(known: KnownFacts, kind: type[AnyEvent]) -> int:
    return sum(1 for entry in await known.all() if isinstance(entry.fact.event, kind))


async def _suspend(work: TurnWork, missing: list[str]) -> None:
    """Nothing is settled and nothing is lost: the turn waits, and says for what."""
    suspended, place = work.state.rest.suspended_for, work.place
    if suspended is None or suspended.waiting_for != tuple(missing):
        event = TurnSuspended(reason="tool_missing", waiting_for=tuple(missing))
        await place.store.append(place.claim, [work.fact(event)], barrier=True)
    raise ToolMissing(
        f"turn {place.row.turn_id} of agent {place.row.agent_name!r} waits for {', '.join(missing)}: it was cut off "
        "inside a call that needs the tool's code to be settled",
        "nothing was changed; supply the tool in agents=[...] or with --tools module:name, and resume again",
    )
