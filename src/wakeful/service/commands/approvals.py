"""Approvals and questions: listed, shown, decided once, by anybody entitled, from any process on the same store.

A decision is appended like any outsider's fact, with a barrier. The store compares and sets in one transaction: whoever
comes second changes nothing and is told who decided. Deciding needs none of the tool's code.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from shlex import quote
from typing import Any

from pydantic import ValidationError

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.approvals import RUNTIME, Always, Answer, Approval, Approve, Decided, Edit, Reject, is_approver
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AlreadyDecided, ApprovalNotFound, InvalidValue, NotEntitled
from wakeful.contracts.events import (
    ActionRequired,
    ActionResolved,
    AnyEvent,
    ApprovalRuleAdded,
    ApprovalRuleRevoked,
    AssistantRecorded,
    PermissionEvaluated,
    TurnConfigChanged,
    TurnStarted,
)
from wakeful.contracts.jsonable import NotJson, plain
from wakeful.contracts.policies import Rule
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.injected_fields import split
from wakeful.decisions.redaction import REDACTED, redact_parameters
from wakeful.decisions.secret_shapes import hide_shapes, hide_shapes_in
from wakeful.engine.run_request import Engine
from wakeful.engine.state_loader import load_config
from wakeful.gate import argument_validation
from wakeful.gate.approval_binding import bind
from wakeful.gate.large_content import INLINE_BYTES, arguments_of
from wakeful.ports import ActionRow, Blobs, Log, RuleRow, Store, TableReads
from wakeful.service.queries.record_names import begin_with, several
from wakeful.views.approval_record import approval

APPROVAL = "appr_"
KINDS = ("approval", "question")
"""What is decided here; calls of clients and what hosts keep are not."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a decision."""

    approval: Approval
    duplicate: bool = False
    """It had been decided before; this is what was decided then."""
    is_same: bool = True
    """Of a duplicate: the answer, or the arguments, were these."""
    rule_id: str | None = None
    arguments: dict[str, Any] | None = None
    """Of an edit: the new arguments, secrets redacted."""


async def approvals(engine: Engine, *, pending_only: bool = True, turn_id: str | None = None) -> list[Approval]:
    """Every approval and question, oldest first. What is past its time is decided as such on the way."""
    rows = await engine.store.actions(pending_only=pending_only, turn_id=turn_id)
    records = [await _record(engine.store, await _expired(engine, row)) for row in rows if row.kind in KINDS]
    return [record for record in records if record.status == "pending" or not pending_only]


async def show(engine: Engine, approval_id: str) -> Approval:
    """One record. Raises ApprovalNotFound, with near names."""
    return await _record(engine.store, await _expired(engine, await _find(engine.store, approval_id)))


async def decide(engine: Engine, approval_id: str, decided: Decided, *, by: str = "program") -> Outcome:
    """Decide once. Raises ApprovalNotFound, NotEntitled, or InvalidValue when the decision does not fit."""
    store = engine.store
    row = await _expired(engine, await _find(store, approval_id))
    if row.status != "pending":
        return await _decided_before(store, row, decided)
    asked = await _asked(store, row)
    _check_entitled(asked, by)
    events = await _resolution(engine, row, asked, decided, by)
    facts = [_fact(engine, row, event) for event in events]
    try:
        await store.admit(row.agent_id, facts)
    except AlreadyDecided:
        return await _decided_before(store, await store.action(row.action_id) or row, decided)
    row = await store.action(row.action_id) or row
    rule = next((event.rule_id for event in events if isinstance(event, ApprovalRuleAdded)), None)
    return Outcome(await _record(store, row), rule_id=rule, arguments=await _new_arguments(store, row, events))


async def _decided_before(store: Store, row: ActionRow, decided: Decided) -> Outcome:
    said, is_same = await _said(store, row), True
    match decided:
        case Answer() if said is not None:
            now = await _answer(store, _plain("answer", decided.content))
            is_same = now == ({"answer": said.answer} if said.answer_ref is None else {"answer_ref": said.answer_ref})
        case Edit() if said is not None:
            is_same = said.arguments == _plain("arguments", decided.arguments)
    return Outcome(await _record(store, row), duplicate=True, is_same=is_same)


async def _new_arguments(store: Store, row: ActionRow, events: Sequence[AnyEvent]) -> dict[str, Any] | None:
    edited = next((each for each in events if isinstance(each, ActionResolved) and each.arguments is not None), None)
    if edited is None or edited.arguments is None:
        return None
    declaration = await _declaration(store, row)
    shown: dict[str, Any] = hide_shapes_in(
        redact_parameters(edited.arguments, declaration.input_schema, declaration.sensitive_parameters)
    )
    return shown


async def edited_arguments(
    engine: Engine, approval_id: str, whole: Mapping[str, Any] | None, changed: Mapping[str, str]
) -> dict[str, Any]:
    """New arguments for a call: `whole` in the place of what the model wrote, then single fields as they were typed.

    What is left as `[redacted]` stays what it was: whoever edits need not know a secret to leave it alone.
    """
    store = engine.store
    row = await _find(store, approval_id)
    config = await _config(store, row)
    written = await _written(store, row)
    real = split(written, config.injected_tool_args).executable
    declaration = config.tool(row.tool_name)
    properties = declaration.input_schema.get("properties", {}) if declaration is not None else {}
    arguments = kept_secrets(dict(whole), real) if whole is not None else dict(real)
    for name, text in changed.items():
        arguments[name] = _typed(text, properties.get(name))
    return arguments


def kept_secrets(given: Any, real: Any) -> Any:
    """`given` with the real value wherever it says `[redacted]`, alone or inside a text that is otherwise the same."""
    if given == REDACTED:
        return real if real is not None else given
    if isinstance(given, str) and isinstance(real, str) and given == hide_shapes(real):
        return real
    if isinstance(given, dict):
        known = real if isinstance(real, dict) else {}
        return {name: kept_secrets(value, known.get(name)) for name, value in given.items()}
    if isinstance(given, list):
        known_items = real if isinstance(real, list) and len(real) == len(given) else [None] * len(given)
        return [kept_secrets(value, known_item) for value, known_item in zip(given, known_items, strict=True)]
    return given


def _typed(text: str, schema: Any) -> Any:
    """What was typed for a field: a text where the schema wants one, else JSON when it is JSON."""
    if isinstance(schema, dict) and schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


async def rules(engine: Engine, agent_name: str | None = None) -> list[RuleRow]:
    """Rules that were added with `always`, revoked ones included."""
    return await engine.store.rules(agent_name)


async def revoke_rule(engine: Engine, rule_id: str, *, by: str = "program") -> RuleRow:
    """Take a rule back: no call is let through by it any more, in turns that are open no less than in new ones.

    Raises ApprovalNotFound.
    """
    known = {row.rule_id: row for row in await engine.store.rules()}
    fitting = [rule_id] if rule_id in known else begin_with(rule_id, known, "rule_")
    if len(fitting) > 1:
        raise ApprovalNotFound(*several(rule_id, "rules", fitting))
    if not fitting:
        near = get_close_matches(rule_id, known, n=3, cutoff=0.4)
        listing = f"List the rules: wakeful approvals rules --store {quote(engine.store.location)}"
        hint = f"Did you mean {' or '.join(near)}?" if near else listing
        raise ApprovalNotFound(f"there is no rule {rule_id!r} in {engine.store.location}", hint)
    row = known[fitting[0]]
    if row.revoked_at is None:
        event, now = ApprovalRuleRevoked(rule_id=row.rule_id, revoked_by=by), engine.clock.now()
        await engine.store.admit(row.agent_id, [Fact(event, now)])
        async for turn in engine.store.open_turns():
            if turn.agent_name == row.agent_name:  # whoever works on it has the rule in hand
                await engine.store.admit(turn.agent_id, [Fact(event, now, turn.thread_id, turn.turn_id)])
    return next(each for each in await engine.store.rules() if each.rule_id == row.rule_id)


# --- reading ---------------------------------------------------------------------------------------------------------


async def _find(store: Store, approval_id: str) -> ActionRow:
    row = await store.action(approval_id)
    if row is not None and row.kind in KINDS:
        return row
    rows = {row.action_id: row for row in await store.actions() if row.kind in KINDS}
    fitting = begin_with(approval_id, rows, APPROVAL) or await _pending_of(store, approval_id)
    if len(fitting) == 1:
        return rows[fitting[0]]
    if fitting:
        candidates = [f"{each}  {rows[each].status}  {rows[each].tool_name}" for each in fitting]
        raise ApprovalNotFound(*several(approval_id, "approvals", candidates))
    near = get_close_matches(approval_id, rows, n=3, cutoff=0.5)
    listing = f"List pending approvals: wakeful approvals --store {quote(store.location)}"
    hint = f"Did you mean {' or '.join(near)}?" if near else listing
    raise ApprovalNotFound(f"there is no approval {approval_id!r} in {store.location}", hint)


async def _pending_of(store: TableReads, turn: str) -> list[str]:
    """What is pending in a turn that is named by its id or its key."""
    row = await store.turn(turn) or (await store.turn_of_key(turn) if turn else None)
    if row is None:
        return []
    pending = await store.actions(pending_only=True, turn_id=row.turn_id)
    return [each.action_id for each in pending if each.kind in KINDS]


async def _record(store: Log, row: ActionRow) -> Approval:
    asked, said = await _asked(store, row), await _said(store, row)
    return approval(row, row.call_id, asked, said, requested_at=row.requested_at, decided_at=row.decided_at)


async def _said(store: Log, row: ActionRow) -> ActionResolved | None:
    if row.resolved_seq is None:
        return None
    (resolved,) = await store.read(row.agent_id, after=row.resolved_seq - 1, limit=1)
    assert isinstance(resolved.fact.event, ActionResolved)
    return resolved.fact.event


async def _asked(store: Log, row: ActionRow) -> ActionRequired:
    (required,) = await store.read(row.agent_id, after=row.required_seq - 1, limit=1)
    assert isinstance(required.fact.event, ActionRequired)
    return required.fact.event


async def _expired(engine: Engine, row: ActionRow) -> ActionRow:
    """A record past its time is decided by whoever looks first."""
    if row.status != "pending" or row.expires_at > engine.clock.now():
        return row
    event = ActionResolved(
        action_id=row.action_id,
        tool_name=row.tool_name,
        status="timed_out",
        decision="expire",
        resolver=RUNTIME,
        reason="nobody decided in time",
    )
    try:
        await engine.store.admit(row.agent_id, [_fact(engine, row, event)])
    except AlreadyDecided:
        pass
    return await engine.store.action(row.action_id) or row


# --- deciding --------------------------------------------------------------------------------------------------------


def _check_entitled(asked: ActionRequired, by: str) -> None:
    if not is_approver(by, asked.approvers):
        raise NotEntitled(
            f"{by!r} may not decide about {asked.action_id}: it is for {', '.join(asked.approvers)}",
            "nothing was changed; let one of them decide",
        )


async def _resolution(
    engine: Engine, row: ActionRow, asked: ActionRequired, decided: Decided, by: str
) -> list[AnyEvent]:
    fields: dict[str, Any] = {"action_id": row.action_id, "tool_name": row.tool_name, "resolver": by}
    if not isinstance(decided.note, str):
        raise InvalidValue("invalid_decision", "note", f"a note is a text, not {decided.note!r}")
    if decided.note:
        fields["reason"] = decided.note
    match decided:
        case Reject():
            return [ActionResolved(status="rejected", decision="reject", **fields)]
        case Answer():
            _check_answer(asked, decided)
            content = await _answer(engine.store, _plain("answer", decided.content))
            return [ActionResolved(status="approved", decision="answer", **content, **fields)]
        case _ if asked.action_type == "question":
            raise InvalidValue(
                "invalid_decision",
                "decision",
                f"{row.action_id} is a question: it can be answered or rejected",
                f"wakeful approvals answer {row.action_id} TEXT",
            )
        case Approve():
            return [ActionResolved(status="approved", decision="approve", **fields)]
        case Edit():
            declaration = await _declaration(engine.store, row)
            arguments = _checked(declaration, _plain("arguments", decided.arguments))
            binding = bind(engine.store.secret, declaration, arguments, None)
            edited = ActionResolved(status="approved", decision="edit", arguments=arguments, binding=binding, **fields)
            return [edited]
        case Always():
            rule_id = engine.ids.new("rule")
            rule = _rule(asked, decided, rule_id, by, engine.clock.now() / 1_000_000)
            added = ApprovalRuleAdded(
                rule_id=rule_id, agent_name=row.agent_name, rule=rule, added_by=by, action_id=row.action_id
            )
            return [added, ActionResolved(status="approved", decision="always", rule_id=rule_id, rule=rule, **fields)]


def _plain(field: str, value: Any) -> Any:
    """A value as JSON data. Raises InvalidValue."""
    try:
        return plain(value)
    except NotJson as error:
        raise InvalidValue("invalid_decision", field, str(error), "give JSON data") from None


async def _answer(store: Blobs, content: Any) -> dict[str, Any]:
    """The answer where the event has it: by itself, or behind a reference when it is large."""
    encoded = json.dumps(content).encode()
    if len(encoded) <= INLINE_BYTES:
        return {"answer": content}
    return {"answer_ref": await store.put_blob(encoded, "application/json")}


def _check_answer(asked: ActionRequired, answer: Answer) -> None:
    if asked.choices and answer.content not in asked.choices:
        raise InvalidValue(
            "invalid_decision",
            "answer",
            f"{answer.content!r} is not one of the choices",
            f"give one of: {', '.join(asked.choices)}",
        )


def _checked(declaration: ToolDeclaration, arguments: dict[str, Any]) -> dict[str, Any]:
    violations = argument_validation.compile(declaration.input_schema).check(arguments)
    if violations:
        words = "; ".join(f"{each.path or 'arguments'}: {each.message}" for each in violations[:3])
        raise InvalidValue("invalid_decision", "arguments", words, f"they have to fit the schema of {declaration.name}")
    return arguments


def _rule(asked: ActionRequired, always: Always, rule_id: str, by: str, now: float) -> dict[str, Any]:
    """A standing answer, as a permission rule."""
    rule: dict[str, Any] = {
        "id": rule_id,
        "origin": "always",
        "decision": "allow",
        "decided_by": by,
        "match": always.match if always.scope == "pattern" and always.match else asked.tool_name,
        "reason": always.note or f"{by} said always",
    }
    if always.scope == "call":
        rule["call_hash"] = asked.binding
    if always.scope == "pattern" and always.arguments:
        rule["arguments"] = dict(always.arguments)
    if always.for_seconds is not None:
        rule["expires"] = _end(always.for_seconds, now)
    try:
        Rule.model_validate(rule)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "rule"
        raise InvalidValue("invalid_decision", where, f"{where}: {first['msg']}", "nothing was decided") from None
    return rule


def _end(seconds: Any, now: float) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise InvalidValue("invalid_decision", "for_seconds", f"for_seconds={seconds!r}", "give a positive number")
    return now + seconds


async def _config(store: Store, row: ActionRow) -> TurnConfig:
    """The turn's newest configuration. A call that waits belongs to a turn that began, so there is one."""
    events = [recorded.fact.event for recorded in await store.read(row.agent_id, turn_id=row.turn_id)]
    digests = [event.config_ref.digest for event in events if isinstance(event, TurnStarted | TurnConfigChanged)]
    return await load_config(store, digests[-1])


async def _written(store: Store, row: ActionRow) -> dict[str, Any]:
    """The arguments that were asked about: as the model wrote them, or whoever put others in their place."""
    written: dict[str, Any] = {}
    for recorded in await store.read(row.agent_id, turn_id=row.turn_id):
        event = recorded.fact.event
        if isinstance(event, AssistantRecorded):
            for part in event.item.calls:
                if part.call_id == row.call_id:
                    written = await arguments_of(part, store.get_blob) or {}
        elif recorded.fact.call_id != row.call_id:
            continue
        elif isinstance(event, PermissionEvaluated):
            written = next((said.arguments for said in event.said[::-1] if said.arguments is not None), written)
        elif isinstance(event, ActionResolved) and event.arguments is not None:
            written = event.arguments
    return written


async def _declaration(store: Store, row: ActionRow) -> ToolDeclaration:
    """The tool as the turn's newest configuration declares it."""
    declaration = (await _config(store, row)).tool(row.tool_name)
    if declaration is None:
        raise InvalidValue(
            "invalid_decision", "decision", f"the tool {row.tool_name} is no longer there", "it can still be rejected"
        )
    return declaration


def _fact(engine: Engine, row: ActionRow, event: AnyEvent) -> Fact:
    if isinstance(event, ApprovalRuleAdded):
        return Fact(event, engine.clock.now())
    return Fact(event, engine.clock.now(), row.thread_id, row.turn_id, row.step, row.call_id, row.action_id)
