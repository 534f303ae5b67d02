"""What is asked of somebody outside about a call: a person whether it may run, a person a question, a client to run it.

Each is a value, written in the transaction in which the call begins to wait. What is approved is bound to the tool as
it was declared, its arguments and its directory (`gate.approval_binding`); the answer is held to that
(`gate.outside_answers`).
"""

from typing import Any

from wakeful.contracts.errors import ToolAsks
from wakeful.contracts.events import ActionRequired, RuntimeToolRequested
from wakeful.contracts.events.gate import Decision
from wakeful.contracts.events.tools import Elsewhere
from wakeful.contracts.runtime_tools import request_id
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.prompt_words import WHAT_A_YES_ALLOWS
from wakeful.decisions.receipts import bounded
from wakeful.decisions.redaction import stable_hash
from wakeful.gate.approval_binding import bind, held_by
from wakeful.gate.call_at_gate import NOBODY_SAID, CallAtGate, Consultation
from wakeful.gate.call_facts import safe_arguments
from wakeful.gate.turn_gate import GateParts
from wakeful.tools.results import clean
from wakeful.tools.tool import Tool

APPROVAL_DECISIONS: tuple[Decision, ...] = ("approve", "reject", "edit", "answer", "always")
QUESTION_DECISIONS: tuple[Decision, ...] = ("answer", "reject")
MAX_PROMPT_CHARS = 2_000


def is_outside(at: CallAtGate, heard: Consultation = NOBODY_SAID) -> bool:
    """Is it carried out by somebody else than this process?"""
    return at.declaration.answered_by != "code" or _elsewhere(at, heard) is not None


def approval(at: CallAtGate, verdict: Verdict, heard: Consultation, parts: GateParts) -> ActionRequired:
    """The question whether a call may run."""
    safe = safe_arguments(at)
    more: dict[str, Any] = {}
    if at.record.injected_args:
        more["injected_args"] = at.record.injected_args
    held = held_by(at.confinement)
    if held is not None:
        more["confinement"] = held
    elsewhere = _elsewhere(at, heard)
    if elsewhere is not None:
        more["elsewhere"] = elsewhere
    return ActionRequired(
        run_kind=parts.run_kind,
        action_id=parts.new_id("appr"),
        tool_name=at.tool_name,
        prompt=_words(at.tool_name, safe),
        reason=_reason(at, verdict),
        decisions=APPROVAL_DECISIONS,
        safe_args=_shown(at, safe),
        args_sha256=stable_hash(safe),
        binding=bind(parts.secret, at.declared, at.arguments, at.directory, held),
        working_directory=at.directory,
        approvers=verdict.approvers,
        expires_at=_expiry(parts, at.tool),
        rule_refs=verdict.rule_refs,
        **more,
    )


def _reason(at: CallAtGate, verdict: Verdict) -> str:
    if at.declaration.server is None:
        return verdict.reason
    return f"{verdict.reason}; {WHAT_A_YES_ALLOWS}" if verdict.reason else WHAT_A_YES_ALLOWS


def approval_from_inside(
    at: CallAtGate, declared: ToolDeclaration, wants: ToolAsks, parts: GateParts
) -> ActionRequired:
    """A tool that was let through says that a person has to decide first."""
    safe = safe_arguments(at)
    directory = at.tool.working_directory(at.arguments)
    held = held_by(at.tool.confinement(at.arguments))
    more: dict[str, Any] = {"confinement": held} if held is not None else {}
    if at.record.injected_args:
        more["injected_args"] = at.record.injected_args
    return ActionRequired(
        run_kind=parts.run_kind,
        action_id=parts.new_id("appr"),
        tool_name=at.tool_name,
        prompt=clean(wants.message)[:MAX_PROMPT_CHARS] or _words(at.tool_name, safe),
        reason=f"{at.tool_name} asks before it does this",
        decisions=APPROVAL_DECISIONS,
        safe_args=safe,
        args_sha256=stable_hash(safe),
        binding=bind(parts.secret, declared, at.arguments, directory, held),
        working_directory=directory,
        expires_at=_expiry(parts, at.tool),
        **more,
    )


def work_outside(at: CallAtGate, heard: Consultation, parts: GateParts) -> ActionRequired | RuntimeToolRequested:
    """What whoever carries the call out is asked for: a person's answer, or a client's run."""
    return _question(at, parts) if at.declaration.answered_by == "person" else _client_request(at, heard, parts)


def _question(at: CallAtGate, parts: GateParts) -> ActionRequired:
    safe, choices = safe_arguments(at), at.arguments.get("choices")
    return ActionRequired(
        run_kind=parts.run_kind,
        action_id=parts.new_id("ask"),
        action_type="question",
        tool_name=at.tool_name,
        prompt=str(at.arguments.get("question", ""))[:MAX_PROMPT_CHARS],
        reason="the agent has a question",
        decisions=QUESTION_DECISIONS,
        choices=tuple(str(choice) for choice in choices) if isinstance(choices, list) else (),
        safe_args=safe,
        args_sha256=stable_hash(safe),
        binding=bind(parts.secret, at.declared, at.arguments, None),
        expires_at=_expiry(parts, at.tool),
    )


def _client_request(at: CallAtGate, heard: Consultation, parts: GateParts) -> RuntimeToolRequested:
    declaration, safe, elsewhere = at.declaration, safe_arguments(at), _elsewhere(at, heard)
    seconds = declaration.timeout if declaration.timeout is not None else parts.client_seconds
    sent = at.tool.for_client(at.arguments)
    more: dict[str, Any] = {name: value for name, value in sent._asdict().items() if value}
    if at.is_rewritten:
        more.setdefault("arguments", at.arguments)
    timeout_at = int((parts.now() + seconds) * 1_000_000)
    if elsewhere is not None:
        more["runtime"] = {**sent.runtime, **elsewhere.runtime}
        more["metadata"] = {**elsewhere.metadata, **sent.metadata}
        timeout_at = elsewhere.timeout_at if elsewhere.timeout_at is not None else timeout_at
    return RuntimeToolRequested(
        request_id=request_id(parts.turn_id, at.tool_name, at.call_id),
        tool_name=at.tool_name,
        safe_args=_shown(at, safe),
        args_sha256=stable_hash(safe),
        timeout_at=timeout_at,
        **more,
    )


def _elsewhere(at: CallAtGate, heard: Consultation) -> Elsewhere | None:
    """What a mediator said about who carries it out: now, or before a person was asked."""
    pending = at.call.pending
    if pending is not None and isinstance(pending.asked, ActionRequired) and pending.asked.elsewhere is not None:
        return pending.asked.elsewhere
    if not heard.said:
        return None
    return next((said.elsewhere for said in reversed(heard.said) if said.elsewhere is not None), None)


def _expiry(parts: GateParts, tool: Tool[Any]) -> int:
    """When a question about a call of the tool expires, in microseconds since the epoch."""
    seconds = tool.approval_expires if tool.approval_expires is not None else parts.expiry_seconds
    return int((parts.now() + seconds) * 1_000_000)


def _shown(at: CallAtGate, safe: dict[str, Any]) -> dict[str, Any]:
    """What stands in the event: of arguments that are kept elsewhere because of their size, a preview and a digest."""
    return safe if at.call.part.arguments_ref is None else bounded(safe)


def _words(name: str, safe: dict[str, Any]) -> str:
    arguments = ", ".join(f"{key}={value!r}" for key, value in safe.items())
    return f"Run {name}({arguments})?"[:MAX_PROMPT_CHARS]
