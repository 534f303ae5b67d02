"""Triggers of agents: made, rotated, revoked, and kept as an agent's definition says.

A trigger belongs to an agent, and to no work item or wait: these may speak of it, and end without it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import EventRefused, InvalidRequest, TriggerNotFound
from wakeful.contracts.events import TriggerCreated, TriggerRevised, TriggerRevoked, TriggerRotated, TriggerUrlGiven
from wakeful.contracts.triggers import (
    DEFAULT_NAME,
    MAX_SAY,
    NAME_PATTERN,
    VARIABLE_PATTERN,
    Signature,
    TriggerEntry,
)
from wakeful.decisions.salted_secrets import SALT, salted
from wakeful.decisions.waking.trigger_addresses import path_of, trigger_id_of
from wakeful.engine.run_request import Engine
from wakeful.ports.triggers import TriggerRow
from wakeful.runtime.timers import DEFINED
from wakeful.views.trigger_records import TriggerCapability

TriggerChange: TypeAlias = TriggerCreated | TriggerRevised | TriggerRotated | TriggerRevoked
SIGNATURES = ("hub_sha256", "standard_webhooks")
_LISTED = "List the triggers: wakeful trigger list, or `rt.triggers()` in a program."


@dataclass(frozen=True, slots=True)
class TriggerTerms:
    """What a trigger does with a delivery, and how it is guarded."""

    name: str = DEFAULT_NAME
    """Blank: the agent's default trigger, which hints and brings no message."""
    say: str = ""
    thread: str = "main"
    signature: Signature | None = None
    signing_env: str | None = None
    created_by: str = "program"


async def create_trigger(engine: Engine, agent_id: str, terms: TriggerTerms) -> TriggerRow:
    """Make a trigger, or make a revoked one again with another address. The default one keeps its address, and takes a
    signature that is given.

    Raises InvalidRequest for terms that do not go together, and for a name that is taken.
    """
    _check(terms)
    trigger_id = trigger_id_of(agent_id, terms.name)
    known = await engine.store.trigger(trigger_id)
    if known is not None and known.state == "active":
        if not terms.name:
            return await _with_signature(engine, known, terms)
        raise InvalidRequest(
            f"agent {agent_id!r} has a trigger called {terms.name!r}", "Rotate or revoke it, or give another name."
        )
    return await _changed(engine, agent_id, _created(engine, trigger_id, terms, known))


def _created(engine: Engine, trigger_id: str, terms: TriggerTerms, known: TriggerRow | None) -> TriggerCreated:
    return TriggerCreated(
        trigger_id=trigger_id,
        name=terms.name,
        delivery_mode="enqueue_message" if terms.name else "wake_hint",
        generation=1 if known is None else known.generation + 1,
        say=terms.say,
        thread=terms.thread,
        signature=terms.signature,
        signing_env=terms.signing_env,
        created_by=terms.created_by,
        salt=engine.ids.new(SALT),
    )


async def _with_signature(engine: Engine, row: TriggerRow, terms: TriggerTerms) -> TriggerRow:
    """The default trigger, which from now on takes only what is signed, where the terms say so."""
    if terms.signature is None or (terms.signature, terms.signing_env) == (row.signature, row.signing_env):
        return row
    event = TriggerRevised(
        trigger_id=row.trigger_id,
        say=row.say,
        thread=row.thread,
        signature=terms.signature,
        signing_env=terms.signing_env,
        revised_by=terms.created_by,
    )
    return await _changed(engine, row.agent_id, event)


async def rotate_trigger(engine: Engine, row: TriggerRow, *, by: str, reason: str = "") -> TriggerRow:
    """Another address; the one before is refused. Raises InvalidRequest for a trigger that was revoked."""
    event = TriggerRotated(
        trigger_id=row.trigger_id,
        generation=row.generation + 1,
        rotated_by=by,
        reason=reason,
        salt=engine.ids.new(SALT),
    )
    return await _changed(engine, row.agent_id, event)


async def revoke_trigger(engine: Engine, row: TriggerRow, *, by: str, reason: str = "") -> TriggerRow:
    """Let it take nothing any more. Raises InvalidRequest for one that was revoked before."""
    return await _changed(engine, row.agent_id, TriggerRevoked(trigger_id=row.trigger_id, revoked_by=by, reason=reason))


async def defined_triggers(
    engine: Engine, agent_id: str, entries: Sequence[TriggerEntry], source: str
) -> list[TriggerChange]:
    """What makes an agent's named triggers those that its definition says, beside those that people made.

    One that stays the same keeps its address, and so does one that changes: programs outside have it. Raises
    InvalidRequest.
    """
    changes: list[TriggerChange] = []
    known = {row.name: row for row in await engine.store.triggers(agent_id) if row.created_by in DEFINED}
    wanted = {entry.trigger: entry for entry in entries}
    for name, row in known.items():
        if name not in wanted and row.state == "active":
            gone = "it was removed from the agent's definition"
            changes.append(TriggerRevoked(trigger_id=row.trigger_id, revoked_by=source, reason=gone))
    for name, entry in wanted.items():
        terms = TriggerTerms(name, entry.say, entry.thread, entry.signature, entry.signing_env, source)
        trigger_id = trigger_id_of(agent_id, name)
        there = await engine.store.trigger(trigger_id)
        if there is None or there.state == "revoked":
            _check(terms)
            changes.append(_created(engine, trigger_id, terms, there))
        elif (there.say, there.thread, there.signature, there.signing_env) != (
            terms.say,
            terms.thread,
            terms.signature,
            terms.signing_env,
        ):
            revised = TriggerRevised(
                trigger_id=there.trigger_id,
                say=terms.say,
                thread=terms.thread,
                signature=terms.signature,
                signing_env=terms.signing_env,
                revised_by=source,
            )
            changes.append(revised)
    return changes


async def trigger_named(engine: Engine, named: str) -> TriggerRow:
    """By its id, as `AGENT/NAME`, or `AGENT` for an agent's default trigger. Raises InvalidRequest."""
    agent, _, name = named.partition("/")
    for trigger_id in (named, trigger_id_of(named), trigger_id_of(agent, name)):
        row = await engine.store.trigger(trigger_id)
        if row is not None:
            return row
    names = [f"{agent}/{row.name}" if row.name else agent for row in await engine.store.triggers(agent)]
    there = f"Agent {agent} has: {', '.join(names)}." if names else "Give its id, AGENT/NAME, or AGENT."
    raise TriggerNotFound(f"there is no trigger {named!r}", f"{there} {_LISTED}")


async def give_url(
    engine: Engine, row: TriggerRow, *, to: str, base: str = "", turn_id: str | None = None, purpose: str = ""
) -> TriggerCapability:
    """The address of a trigger, and on record who was given it. Raises InvalidRequest for one that was revoked."""
    if row.state != "active":
        raise InvalidRequest(f"trigger {row.trigger_id} was revoked: it has no address", "Create it again.")
    event = TriggerUrlGiven(
        trigger_id=row.trigger_id, generation=row.generation, given_to=to, turn_id=turn_id, purpose=purpose[:500]
    )
    await engine.store.admit(row.agent_id, [Fact(event, engine.clock.now())])
    path = path_of(salted(engine.store.secret, row.salt), row.trigger_id, row.generation, row.mode)
    return TriggerCapability(
        external_trigger_id=row.trigger_id,
        trigger_url=f"{base.rstrip('/')}{path}",
        target_agent_id=row.agent_id,
        delivery_mode=row.mode,
        status=row.state,
    )


async def _changed(engine: Engine, agent_id: str, event: TriggerChange) -> TriggerRow:
    try:
        await engine.store.admit(agent_id, [Fact(event, engine.clock.now())])
    except EventRefused as refused:
        raise InvalidRequest(refused.message, _LISTED) from None
    row = await engine.store.trigger(event.trigger_id)
    assert row is not None
    return row


def _check(terms: TriggerTerms) -> None:
    if terms.name and re.fullmatch(NAME_PATTERN, terms.name) is None:
        hint = "Use letters, digits, - _ and . and at most 64 of them."
        raise InvalidRequest(f"a trigger cannot be called {terms.name!r}", hint)
    if not terms.name and (terms.say or terms.thread != "main"):
        raise InvalidRequest(
            "say and thread are for named triggers",
            "The default trigger only wakes the agent: give the trigger a name.",
        )
    if not terms.thread:
        raise InvalidRequest("thread is blank", "Name a thread, or give fresh.")
    if len(terms.say) > MAX_SAY:
        raise InvalidRequest(f"say has {len(terms.say):,} characters", f"Give at most {MAX_SAY:,}, or refer to a file.")
    if terms.signature is not None and terms.signature not in SIGNATURES:
        raise InvalidRequest(f"signature={terms.signature!r}", f"Give one of {', '.join(SIGNATURES)}.")
    if (terms.signature is None) != (terms.signing_env is None):
        hint = "Give both: how deliveries are signed, and the environment variable that holds the secret."
        raise InvalidRequest(f"signature={terms.signature!r} and signing_env={terms.signing_env!r}", hint)
    if terms.signing_env is not None and re.fullmatch(VARIABLE_PATTERN, terms.signing_env) is None:
        hint = "Put the secret into an environment variable, and give the variable's name."
        raise InvalidRequest("signing_env is not the name of an environment variable", hint)
