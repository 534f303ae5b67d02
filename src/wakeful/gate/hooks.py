"""Asking hooks: before a call, when a person is to be asked about one, and after it.

They are asked one after another, in the order of their scopes (runtime, agent, run). A hook only tightens. One that
fails has denied, or withheld what it was to look at; one that only reads leaves a warning. Each is on record, with what
it said, before what follows from it.
"""

import copy
import json
from collections.abc import Sequence
from typing import Any

from wakeful.contracts.content import Text
from wakeful.contracts.envelope import before
from wakeful.contracts.events import (
    AnyEvent,
    HookCompleted,
    ToolFailed,
    ToolResult,
)
from wakeful.contracts.events.tools import Opinion
from wakeful.contracts.tools import PREVIEW_CHARS, HookPoint
from wakeful.decisions.levels import path_of
from wakeful.decisions.policy.command_tools import items_of, single_of, with_item
from wakeful.decisions.policy.patterns import any_named, name_test
from wakeful.gate import argument_validation
from wakeful.gate.call_at_gate import CallAtGate, Consultation
from wakeful.gate.hook_facts import ask, outcomes_of
from wakeful.gate.large_content import Fetch, Keep, resolve
from wakeful.gate.result_shape import MEDIA
from wakeful.gate.turn_gate import GateParts
from wakeful.tools.hooks import Hook, HookInput, HookVerdict
from wakeful.tools.results import clean, show

MAX_REWRITTEN_BYTES = 32_000
"""Arguments that a hook wrote stand in the log, so that a crash and a replay find them."""


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
        heard = await ask(hook, self._input(hook.point, at, arguments, item=item), self.parts)
        verdict, by = heard.verdict, hook.handler_ref
        reason = verdict.reason or f"the hook {hook.name} said {verdict.decision}"
        rewritten = verdict.arguments
        if rewritten is not None and item is not None:
            rewritten = with_item(at.declared.name, arguments, item, rewritten)
        if rewritten is not None and dict(rewritten) == arguments:
            rewritten = None
        problem = "" if rewritten is None else _unfit(at, dict(rewritten), again=again)
        if problem:
            deny = Opinion(by=by, decision="deny", reason=f"the hook {hook.name} {problem}", error_type="hook_blocked")
            return Consultation((deny,), tuple(heard.events)), arguments
        if verdict.decision in ("deny", "block"):
            return Consultation((Opinion(by=by, decision="deny", reason=reason),), tuple(heard.events)), arguments
        asks = verdict.decision == "ask"
        if rewritten is None:
            said = (Opinion(by=by, decision="ask", reason=reason),) if asks else ()
            return Consultation(said, tuple(heard.events)), arguments
        changed = dict(rewritten)
        ref = await self._keep(json.dumps(changed, ensure_ascii=False).encode(), "application/json")
        events = [_referring(event, updated_input_ref=ref.digest) for event in heard.events]
        word = Opinion(by=by, decision="ask" if asks else "allow", reason=reason, arguments=changed)
        return Consultation((word,), tuple(events), changed), changed

    async def asked(self, at: CallAtGate) -> Consultation:
        """A person is to be asked: a hook may say no in their place, never yes."""
        heard = Consultation()
        for hook in self._of("permission_request", at.declared.name):
            for item in _items(hook, at, at.arguments):
                given = self._input(hook.point, at, at.arguments, item=item, reason=at.verdict.reason)
                one = await ask(hook, given, self.parts)
                said: tuple[Opinion, ...] = ()
                if one.verdict.decision in ("deny", "block"):
                    reason = one.verdict.reason or f"the hook {hook.name} said {one.verdict.decision}"
                    said = (Opinion(by=hook.handler_ref, decision="deny", reason=reason),)
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
            depth=at.call.level.depth,
            path=path_of(at.call.level),
            context=copy.deepcopy(dict(parts.context)),
            principal=parts.principal,
            working_directory=at.directory,
            effect=at.declaration.effect,
            derived_from=parts.derived_from(),
            confinement=at.confinement,
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
            heard = await ask(hook, self._after_input(point, at, last, shown), self.parts)
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
            depth=at.call.level.depth,
            path=path_of(at.call.level),
            context=copy.deepcopy(dict(parts.context)),
            principal=parts.principal,
            effect=at.declaration.effect,
            derived_from=parts.derived_from(),
            confinement=at.confinement,
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
