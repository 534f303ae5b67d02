"""Steps 5 and 6 of the gate: everybody who has a say on a call is heard, one after another.

Each may only tighten, whoever raises has denied, and a deny is final. What they said is completed on the call's record.
"""

import asyncio
from dataclasses import replace

from wakeful.contracts.events import AnyEvent
from wakeful.contracts.events.tools import Opinion
from wakeful.contracts.policies import ToolPolicy
from wakeful.contracts.tools import ToolError
from wakeful.gate import verdicts
from wakeful.gate.call_at_gate import CallAtGate, Consultation
from wakeful.gate.outcomes import failed
from wakeful.gate.preparation import rewrite
from wakeful.gate.result_shape import shaped
from wakeful.gate.turn_gate import Consult, GateParts
from wakeful.tools.results import ResultRefused


def own_words(at: CallAtGate, parts: GateParts, policy: ToolPolicy) -> Consultation:
    """What the tool itself and this machine say about the call."""
    said = verdicts.predicate(at, parts)
    return said if at.confinement is None else said.and_then(verdicts.unconfined(at, policy))


async def hear(at: CallAtGate, parts: GateParts, policy: ToolPolicy) -> None:
    """Hear everybody who has a say before the call."""
    for consult in parts.consult:
        one = await word_of(consult, at, parts)
        at.heard = at.heard.and_then(one)
        if one.arguments is not None:
            try:
                rewrite(at, one.arguments)
            except Exception as error:
                at.heard = at.heard.and_then(_raised(error, parts))
                break
            # What was said about the model's own arguments stays said: nothing is loosened by rewriting them.
            at.heard = at.heard.and_then(own_words(at, parts, policy))
        if at.heard.denies:
            break


async def hear_of_edit(at: CallAtGate, parts: GateParts) -> None:
    """A person wrote other arguments: whoever has a say has not seen them. What they ask for has been answered."""
    heard = at.heard
    for consult in parts.consult:
        one = await word_of(consult, at, parts)
        if one.arguments is not None or one.result is not None:
            one = replace(one, said=(*one.said, _not_as_edited()), arguments=None, result=None)
        heard = heard.and_then(one)
    at.heard = replace(heard, said=tuple(map(_only_denies, heard.said)))


async def stand_in(at: CallAtGate, parts: GateParts) -> list[AnyEvent]:
    """The facts of a result that somebody gave in the tool's place."""
    if at.heard.result is None:
        return []
    keys, most = parts.keys(), parts.result_bytes()
    try:
        return await shaped(at.record, at.heard.result, now=parts.now, keep=parts.keep, keys=keys, most=most)
    except ResultRefused as refused:
        error = ToolError(kind="invalid_result", message=refused.message, recovery_hint=refused.hint or None)
        return [failed(at.record, error, now=parts.now(), status="failed", category="execution_failed", effects="none")]


async def word_of(consult: Consult, at: CallAtGate, parts: GateParts) -> Consultation:
    """What somebody outside says about a call. Whoever raises has denied, and so has whoever is cancelled by its own
    doing: only the call's own wait may be cancelled."""
    try:
        heard = await consult(at)
    except Exception as error:
        return _raised(error, parts)
    except asyncio.CancelledError as error:
        waiting = asyncio.current_task()
        if waiting is None or waiting.cancelling():
            raise
        return _raised(error, parts)
    if not any(said.reason for said in heard.said):
        return heard
    safe = tuple(said.model_copy(update={"reason": parts.safe_words(said.reason)}) for said in heard.said)
    return replace(heard, said=safe)


def _raised(error: BaseException, parts: GateParts) -> Consultation:
    """Whoever has a say and raises has denied."""
    reason = parts.safe_words(f"what is asked before a call raised {type(error).__name__}: {error}")
    return Consultation((Opinion(by="hooks", decision="deny", reason=reason),))


def _not_as_edited() -> Opinion:
    return Opinion(by="hooks", decision="deny", reason="a hook would change what a person wrote, and may not")


def _only_denies(said: Opinion) -> Opinion:
    """A person has answered what is asked; what is denied stays denied."""
    return said if said.decision == "deny" else said.model_copy(update={"decision": "allow", "arguments": None})
