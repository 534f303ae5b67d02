"""Asking hooks: before a call, when a person is to be asked about one, and after it.

They are asked one after another, in the order of their scopes (runtime, agent, run). A hook only tightens. One that
fails has denied, or withheld what it was to look at; one that only reads leaves a warning. Each is on record, with what
it said, before what follows from it.
"""

import copy
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from wakeful.contracts.content import Text
from wakeful.contracts.envelope import before
from wakeful.contracts.events import (
    AnyEvent,
    HookCompleted,
    HookFailed,
    HookStarted,
    ToolFailed,
    ToolResult,
    WarningIssued,
)
from wakeful.contracts.events.tools import Said
from wakeful.contracts.tools import PREVIEW_CHARS, HookPoint
from wakeful.decisions.policy.command_tools import items_of, single_of, with_item
from wakeful.decisions.policy.patterns import any_named, name_test
from wakeful.gate import argument_validation
from wakeful.gate.call_at_gate import CallAtGate, Consultation
from wakeful.gate.hook_outcomes import outcomes_of
from wakeful.gate.large_content import Fetch, Keep, resolve
from wakeful.gate.result_shape import MEDIA
from wakeful.gate.time_limit import Late, answered_within
from wakeful.gate.turn_gate import GateParts
from wakeful.tools.hooks import Hook, HookInput, HookVerdict, NoVerdict, read_verdict
from wakeful.tools.results import clean, show
from wakeful.tools.threads import run_in_thread

MAX_REWRITTEN_BYTES = 32_000
"""Arguments that a hook wrote stand in the log, so that a crash and a replay find them."""
MAX_REASON_CHARS = 1_000
FAILED_OPEN = "hook_failed_open"
Failure: TypeAlias = Literal["raised", "timeout", "invalid_answer"]


@dataclass(slots=True)
class _Heard:
    """One hook's word, and the facts about it."""

    verdict: HookVerdict
    events: list[AnyEvent]
    failed: str = ""
    """What went wrong; the verdict then is what that comes to."""


class TurnHooks:
    """The hooks of one turn."""

    def __init__(self, hooks: Sequence[Hook], keep: Keep, fetch: Fetch) -> None:
        self._hooks = tuple(hooks)
        self._keep = keep
        self._fetch = fetch
        self.parts = GateParts()
        """Of the turn's gate; set once it is there."""

    def has(self, *points: HookPoint) -> bool:
        return any(hook.point in points for hook in self._hooks)

    def _of(self, point: HookPoint, tool: str) -> list[Hook]:
        return [hook for hook in self._hooks if hook.point == point and any_named((hook.match,), tool)]

    # --- before the call ----------------------------------------------------------------------------------------------

    async def before(self, at: CallAtGate) -> Consultation:
        """What the hooks before the call say. Whoever spoke before another rewrote the arguments is asked again."""
        hooks = self._of("pre_tool_use", at.declared.name)
        heard = Consultation()
        arguments, rewritten_by = at.arguments, -1
        for place, hook in enumerate(hooks):
            one, arguments = await self._one_before(hook, at, arguments)
            heard = heard.and_then(one)
            if _denied(one):
                return heard
            if one.arguments is not None:
                rewritten_by = place
        for hook in hooks[: max(rewritten_by, 0)]:
            one, _ = await self._one_before(hook, at, arguments, again=True)
            heard = heard.and_then(one)
            if _denied(one):
                return heard
        return heard

    async def _one_before(
        self, hook: Hook, at: CallAtGate, arguments: dict[str, Any], *, again: bool = False
    ) -> tuple[Consultation, dict[str, Any]]:
        """A hook's word on the call; on each call of a batch, where the hook is about such calls."""
        heard = Consultation()
        for item in _items(hook, at, arguments):
            one, arguments = await self._word_before(hook, at, arguments, item, again=again)
            heard = heard.and_then(one)
            if _denied(one):
                break
        return heard, arguments

    async def _word_before(
        self, hook: Hook, at: CallAtGate, arguments: dict[str, Any], item: int | None, *, again: bool
    ) -> tuple[Consultation, dict[str, Any]]:
        heard = await self._ask(hook, self._input(hook.point, at, arguments, item=item))
        verdict, by = heard.verdict, hook.handler_ref
        reason = verdict.reason or f"the hook {hook.name} said {verdict.decision}"
        rewritten = verdict.arguments
        if rewritten is not None and item is not None:
            rewritten = with_item(at.declared.name, arguments, item, rewritten)
        if rewritten is not None and dict(rewritten) == arguments:
            rewritten = None
        problem = "" if rewritten is None else _unfit(at, dict(rewritten), again=again)
        if problem:
            deny = Said(by=by, decision="deny", reason=f"the hook {hook.name} {problem}", error_type="hook_blocked")
            return Consultation((deny,), tuple(heard.events)), arguments
        if verdict.decision in ("deny", "block"):
            return Consultation((Said(by=by, decision="deny", reason=reason),), tuple(heard.events)), arguments
        asks = verdict.decision == "ask"
        if rewritten is None:
            said = (Said(by=by, decision="ask", reason=reason),) if asks else ()
            return Consultation(said, tuple(heard.events)), arguments
        changed = dict(rewritten)
        ref = await self._keep(json.dumps(changed, ensure_ascii=False).encode(), "application/json")
        events = [_referring(event, updated_input_ref=ref.digest) for event in heard.events]
        word = Said(by=by, decision="ask" if asks else "allow", reason=reason, arguments=changed)
        return Consultation((word,), tuple(events), changed), changed

    async def asked(self, at: CallAtGate) -> Consultation:
        """A person is to be asked: a hook may say no in their place, never yes."""
        heard = Consultation()
        for hook in self._of("permission_request", at.declared.name):
            for item in _items(hook, at, at.arguments):
                given = self._input(hook.point, at, at.arguments, item=item, reason=at.verdict.reason)
                one = await self._ask(hook, given)
                said: tuple[Said, ...] = ()
                if one.verdict.decision in ("deny", "block"):
                    reason = one.verdict.reason or f"the hook {hook.name} said {one.verdict.decision}"
                    said = (Said(by=hook.handler_ref, decision="deny", reason=reason),)
                heard = heard.and_then(Consultation(said, tuple(one.events)))
                if said:
                    return heard
        return heard

    def _input(
        self,
        point: HookPoint,
        at: CallAtGate,
        arguments: dict[str, Any],
        *,
        item: int | None = None,
        reason: str = "",
    ) -> HookInput:
        """The call as a hook sees it; with `item`, that call of the batch as if it had been made alone."""
        parts, tool, seen = self.parts, at.declared.name, arguments
        if item is not None:
            tool, seen = single_of(tool) or tool, dict(items_of(tool, arguments)[item])
        return HookInput(
            point=point,
            tool=tool,
            arguments=copy.deepcopy(seen),
            call_id=at.call_id,
            turn_id=parts.turn_id,
            agent=parts.agent_of(at.call),
            thread=parts.thread,
            context=copy.deepcopy(dict(parts.context)),
            principal=parts.principal,
            working_directory=at.directory,
            effect=at.declaration.effect,
            reason=reason,
        )

    # --- after the call -----------------------------------------------------------------------------------------------

    async def after(self, at: CallAtGate, events: list[AnyEvent]) -> list[AnyEvent]:
        """The facts a call ends with, once the hooks after it were heard."""
        *notes, last = events
        assert isinstance(last, ToolResult | ToolFailed)
        point: HookPoint = "post_tool_use" if isinstance(last, ToolResult) else "post_tool_failure"
        hooks = self._of(point, at.declaration.name)
        if not hooks:
            return events
        item = await resolve(last.item, self._fetch)
        words = "".join(part.text for part in item.parts if part.type == "text")
        told: list[AnyEvent] = []
        shown, changed = words, False
        for hook in hooks:
            heard = await self._ask(hook, self._after_input(point, at, last, shown))
            output = _shown_instead(hook, heard.verdict, at.declaration.name)
            if output is not None and output != shown:
                shown, changed = self.parts.keys().hide_keys(clean(output)), True
                ref = await self._keep(shown.encode(), MEDIA)
                heard.events = [_referring(event, updated_output_ref=ref.digest) for event in heard.events]
            told += heard.events
        if changed:
            last = await self._replaced(last, words, shown)
        outcomes = outcomes_of([*told, last], lambda index: before(len(told) - index))
        last = last.model_copy(update={"hook_outcomes": (*last.hook_outcomes, *outcomes)})
        return [*notes, *told, last]

    def _after_input(self, point: HookPoint, at: CallAtGate, last: ToolResult | ToolFailed, shown: str) -> HookInput:
        parts = self.parts
        return HookInput(
            point=point,
            tool=at.declaration.name,
            arguments=copy.deepcopy(at.arguments),
            call_id=at.call_id,
            turn_id=parts.turn_id,
            agent=parts.agent_of(at.call),
            thread=parts.thread,
            context=copy.deepcopy(dict(parts.context)),
            principal=parts.principal,
            effect=at.declaration.effect,
            result=shown,
            error=last.tool_error if isinstance(last, ToolFailed) else None,
        )

    async def _replaced(self, last: ToolResult | ToolFailed, words: str, shown: str) -> ToolResult | ToolFailed:
        """The same outcome with another text for the model; what the tool said is kept."""
        parts = show(shown).parts
        item = last.item.model_copy(update={"parts": parts})
        if isinstance(last, ToolFailed):
            return last.model_copy(update={"item": item})
        whole = last.result_ref or await self._keep(words.encode(), MEDIA)
        return last.model_copy(
            update={
                "item": item,
                "preview": next((part.text for part in parts if isinstance(part, Text)), "")[:PREVIEW_CHARS],
                "redacted": True,
                "images": (),
                "result_ref": whole,
                "artifact_refs": tuple(dict.fromkeys((whole.digest, *last.artifact_refs))),
            }
        )

    # --- one hook -----------------------------------------------------------------------------------------------------

    async def _ask(self, hook: Hook, given: HookInput) -> _Heard:
        started = HookStarted(point=hook.point, handler_ref=hook.handler_ref, timeout_ms=int(hook.timeout * 1000))
        began = time.perf_counter()
        failure: tuple[Failure, str]
        try:
            said = await _within(hook, given)
            verdict = read_verdict(hook.point, said, read_only=hook.read_only)
        except Late:
            failure = "timeout", f"did not answer within {hook.timeout:g} s"
        except NoVerdict as wrong:
            failure = "invalid_answer", str(wrong)
        except Exception as raised:
            failure = "raised", f"raised {type(raised).__name__}: {raised}"
        else:
            took = round((time.perf_counter() - began) * 1000, 3)
            completed = HookCompleted(
                point=hook.point,
                handler_ref=hook.handler_ref,
                duration_ms=took,
                decision=verdict.decision,
                reason=self._words(verdict.reason),
            )
            said_safely = HookVerdict(verdict.decision, completed.reason, verdict.arguments, verdict.output)
            return _Heard(said_safely, [started, completed])
        category, words = failure
        message = self._words(f"the hook {hook.name} {words}")
        failed = HookFailed(
            point=hook.point,
            handler_ref=hook.handler_ref,
            error_category=category,
            message=message,
            retryable=category == "timeout",
            fail_mode="open" if hook.read_only else "closed",
            duration_ms=round((time.perf_counter() - began) * 1000, 3),
        )
        if hook.read_only:
            warning = WarningIssued(code=FAILED_OPEN, message=f"{message}; the call went on")
            return _Heard(HookVerdict(), [started, failed, warning], message)
        return _Heard(HookVerdict("deny", message), [started, failed], message)

    def _words(self, text: str) -> str:
        """Words for the log and the model: bounded, and without the runtime's own keys."""
        return self.parts.keys().hide_keys(clean(text))[:MAX_REASON_CHARS] if text else ""


async def _within(hook: Hook, given: HookInput) -> Any:
    """The hook's answer, in its time."""
    if hook.is_async:
        return await answered_within(hook(given), hook.timeout)
    return await answered_within(run_in_thread(lambda: hook(given)), hook.timeout)


def _items(hook: Hook, at: CallAtGate, arguments: dict[str, Any]) -> Sequence[int | None]:
    """What a hook is asked about: the call (None), or each call of a batch that it is about by the single tool."""
    name = at.declared.name
    if single_of(name) is None or name_test(hook.match)(name):
        return (None,)
    return range(len(items_of(name, arguments)))


def _denied(heard: Consultation) -> bool:
    return any(said.decision == "deny" for said in heard.said)


def _unfit(at: CallAtGate, rewritten: dict[str, Any], *, again: bool) -> str:
    """Why these arguments cannot stand in the place of the others, or nothing."""
    if again:
        return "rewrote what another hook had rewritten: they do not agree"
    if len(json.dumps(rewritten, ensure_ascii=False).encode("utf-8", "replace")) > MAX_REWRITTEN_BYTES:
        return f"wrote arguments of more than {MAX_REWRITTEN_BYTES} bytes"
    violations = argument_validation.compile(at.declared.input_schema).check(rewritten)
    if not violations:
        return ""
    first = violations[0]
    return f"wrote arguments that do not fit the schema: {first.path or 'arguments'}: {first.message}"


def _shown_instead(hook: Hook, verdict: HookVerdict, tool: str) -> str | None:
    """What the model reads in the place of the output; None: the output."""
    if verdict.decision in ("deny", "block"):
        return f"(the output of {tool} is withheld: {verdict.reason or f'the hook {hook.name} said so'})"
    return verdict.output


def _referring(event: AnyEvent, **refs: str) -> AnyEvent:
    return event.model_copy(update=refs) if isinstance(event, HookCompleted) else event
