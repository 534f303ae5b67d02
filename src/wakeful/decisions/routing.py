"""Which models a turn may ask, in which order, and why: from what is known of each to the facts that say so.

`route` looks at every model of the chain once. One that cannot be asked for what the turn needs is left out with its
reason; the rest are tried in the caller's order. A model is never asked for less than the turn needs, unless the caller
said beforehand that it accepts that gap.

A model that is over its limit is left out while another can be asked. When nothing but limits is in the way, the models
are asked all the same, the one that is free first at the front: what is refused is waited for.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from wakeful.contracts.content import File, Image, Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events import (
    ExcludedModel,
    LimitState,
    ModelCandidate,
    ModelFailed,
    RoutingCandidatesResolved,
    RoutingDecided,
    RoutingNotPossible,
    RoutingSingleCandidate,
)
from wakeful.contracts.events.routing import ExclusionReason, RoutingMode
from wakeful.contracts.setting_names import Capability
from wakeful.contracts.values import unchecked

RoutingFact: TypeAlias = RoutingCandidatesResolved | RoutingSingleCandidate | RoutingDecided | RoutingNotPossible
Source: TypeAlias = Literal["user", "agent_config", "host_policy", "runtime"]
"""Who named the model: whoever asked for the run, the agent, or nobody."""
CAPABILITIES: tuple[str, ...] = get_args(Capability)
"""Every word a requirement may have."""
NEED_TOOLS = frozenset({"build_workflow", "finish_subtask"})
"""Tools whose call is the answer itself: a model that cannot call them cannot answer."""
FOR_A_WHILE: frozenset[ExclusionReason] = frozenset({"rate_limited", "quota_blocked"})
"""Reasons that pass by themselves; they are looked at when a turn begins and not when it is taken up again."""

# Every turn makes them, of values that are ours.
_candidates_resolved, _model_candidate = unchecked(RoutingCandidatesResolved), unchecked(ModelCandidate)
_routing_decided, _single_candidate = unchecked(RoutingDecided), unchecked(RoutingSingleCandidate)
_limit_state = unchecked(LimitState)


class KnownLimit(NamedTuple):
    """What a provider said about a model's limits, and until when that holds."""

    state: Literal["low", "limited", "blocked"]
    until_ms: int
    """Since the epoch."""


class ModelFacts(NamedTuple):
    """What is known of one model of the chain."""

    ref: str
    capabilities: frozenset[str] | None = None
    """None: nobody has declared what it can do."""
    context_window: int | None = None
    price_known: bool = False
    prompt_cost: Decimal | None = None
    """What the prompt alone would cost; None: not known."""
    unpriced_hint: str = ""
    """How whoever brought it can say its price."""
    barred: ExclusionReason | None = None
    """Why it cannot be asked, whatever the turn needs: no key, no transport, a rule."""
    detail: str = ""
    limit: KnownLimit | None = None


class Requirements(NamedTuple):
    """What a turn needs of its model."""

    capabilities: tuple[str, ...] = ()
    prompt_tokens: int = 0
    """The part of the prompt that nothing can fold: instructions, tools, the message. Guessed low."""
    accepted_gap: frozenset[str] = frozenset()
    """Capabilities that the caller can do without, said beforehand."""


class MoneyLeft(NamedTuple):
    """What the turn may spend, and has spent."""

    limit: Decimal | None = None
    spent: Decimal = Decimal(0)
    unpriced_allowed: bool = False
    """There is a ceiling in tokens for models whose price nobody knows."""
    windowed: bool = False
    """A spend window holds: what a request costs has to be known."""


class Route(NamedTuple):
    """The decision."""

    places: tuple[int, ...]
    """The models to ask, by their place in the chain, in order; empty: none can be."""
    facts: tuple[RoutingFact, ...]


def requirements(
    messages: Iterable[UserItem], tool_names: Iterable[str] = (), require: Iterable[str] = ()
) -> tuple[str, ...]:
    """The capabilities that a turn cannot do without, in the order of `CAPABILITIES`.

    Tools are one only where something needs them: a model without tools still answers, in words. A structured answer is
    none: it is checked here, whoever gives it. Neither are files of text: they are read to any model.
    """
    needed = set(require)
    if not NEED_TOOLS.isdisjoint(tool_names):
        needed.add("tools")
    needed.update(word for part in attachments(messages) if (word := _needed_by(part)) is not None)
    return tuple(name for name in CAPABILITIES if name in needed) if needed else ()


def attachments(messages: Iterable[UserItem]) -> list[Image | File]:
    """What the messages of a turn hold beside text."""
    return [part for item in messages for part in item.parts if not isinstance(part, Text)]


def _needed_by(part: Image | File) -> str | None:
    """The capability that an attachment needs, as far as its media type says."""
    family = part.media_type.partition("/")[0].lower()
    if isinstance(part, Image) or family == "image":
        return "vision"
    if family == "audio":
        return "audio"
    return "files" if family == "video" or part.media_type.lower() == "application/pdf" else None


def route(
    routing_id: str,
    models: Sequence[ModelFacts],
    needs: Requirements,
    money: MoneyLeft,
    now_ms: int,
    *,
    source: Source = "agent_config",
) -> Route:
    """Who is asked. `models` are the requested one and its fallbacks, in order."""
    against = [_against(model, needs, money, now_ms) for model in models]
    places = [place for place, why in enumerate(against) if why is None] or _worth_a_wait(models, against)
    free = [models[place] for place in places]
    excluded = tuple(why for place, why in enumerate(against) if why is not None and place not in places)
    requested = models[0].ref if models else ""
    provider, _, name = requested.partition(":")
    if not free:
        reason = f"no model can be asked: {'; '.join(map(_words, excluded))}" if excluded else "there is no model"
        return Route(
            (),
            (
                _resolved(routing_id, provider, name, needs, (), excluded),
                RoutingNotPossible(
                    routing_id=routing_id,
                    required_capabilities=needs.capabilities,
                    excluded=excluded,
                    decision_reason=reason,
                    limit_state=limit_state(models[0].limit if models else None, money, now_ms),
                ),
            ),
        )
    selected = free[0]
    lacking = {name for model in free for name in _lacks(model, needs)} if needs.capabilities else set()
    gap = tuple(name for name in CAPABILITIES if name in lacking) if lacking else ()
    said: dict[str, Any] = {
        "routing_id": routing_id,
        "mode": _mode(selected.ref == requested, len(free), source),
        "decision_source": source if selected.ref == requested else "runtime",
        "decision_reason": _reason(selected, requested, free, excluded, gap),
        "requested_provider": provider or None,
        "requested_model": name or None,
        "selected_model_ref": selected.ref,
        "candidate_count": len(free),
        "fallback_chain": tuple(model.ref for model in free[1:]),
        "required_capabilities": needs.capabilities,
        "capability_gap": gap,
        "requires_user_override": bool(gap),
        "limit_state": limit_state(selected.limit, money, now_ms),
    }
    decided = _routing_decided(**said)
    candidates = tuple(_candidate(model) for model in free)
    single = (_single_candidate(**said),) if len(free) == 1 else ()
    resolved = _resolved(routing_id, provider, name, needs, candidates, excluded)
    return Route(tuple(places), (resolved, *single, decided))


def limit_state(limit: KnownLimit | None, money: MoneyLeft, now_ms: int) -> LimitState:
    """Money and the provider's limits at this moment."""
    state = limit.state if limit is not None else None
    return _limit_state(
        budget_limit=f"{money.limit:f}" if money.limit is not None else None,
        budget_spent=f"{money.spent:f}" if money.limit is not None else None,
        rate_limit="limited" if state == "limited" else "unknown",
        retry_after_ms=max(0, limit.until_ms - now_ms) if limit is not None and state == "limited" else None,
        quota="low" if state == "low" else "blocked" if state == "blocked" else "unknown",
    )


def moved_limits(lost: ModelFailed, money: MoneyLeft) -> LimitState:
    """The same when a lost attempt ends a candidate: what it said, and what the turn has spent."""
    return _limit_state(
        budget_limit=f"{money.limit:f}" if money.limit is not None else None,
        budget_spent=f"{money.spent:f}" if money.limit is not None else None,
        rate_limit="limited" if lost.failure_kind == "rate_limited" else "unknown",
        retry_after_ms=lost.retry_after_ms,
        quota="blocked" if lost.failure_kind == "quota_exhausted" else "unknown",
    )


def same_candidates(before: RoutingCandidatesResolved, now: RoutingCandidatesResolved) -> bool:
    """Whether the decision of a turn still stands: same needs, same models, apart from limits that pass."""
    return (before.required_capabilities, _lasting(before)) == (now.required_capabilities, _lasting(now))


def _lasting(resolved: RoutingCandidatesResolved) -> tuple[set[str], set[tuple[str, str]]]:
    for_a_while = {each.model_ref for each in resolved.excluded if each.reason in FOR_A_WHILE}
    usable = {each.model_ref for each in resolved.candidates} | for_a_while
    return usable, {(each.model_ref, each.reason) for each in resolved.excluded if each.reason not in FOR_A_WHILE}


# --- one model --------------------------------------------------------------------------------------------------------


def _lacks(model: ModelFacts, needs: Requirements) -> tuple[str, ...]:
    if model.capabilities is None or not needs.capabilities:
        return ()
    return tuple(name for name in needs.capabilities if name not in model.capabilities)


def _against(model: ModelFacts, needs: Requirements, money: MoneyLeft, now_ms: int) -> ExcludedModel | None:
    """What speaks against asking it; the first reason that lasts, else one that passes."""

    def excluded(reason: ExclusionReason, detail: str) -> ExcludedModel:
        return ExcludedModel(model_ref=model.ref, reason=reason, detail=detail)

    if model.barred is not None:
        return excluded(model.barred, model.detail)
    lacking = _lacks(model, needs)
    if lacking and (missing := [name for name in lacking if name not in needs.accepted_gap]):
        return excluded("capability_gap", f"it has no {', no '.join(missing)}")
    window = model.context_window
    if window is not None and needs.prompt_tokens > window:
        return excluded(
            "capability_gap", f"its window is {window:,} tokens, and about {needs.prompt_tokens:,} are sent"
        )
    limited = money.limit is not None or money.windowed
    if limited and not model.price_known and not money.unpriced_allowed:
        hint = f"; {model.unpriced_hint}" if model.unpriced_hint else ""
        return excluded("unpriced", f"there is a limit in money, and its price is not known{hint}")
    if money.limit is not None:
        left = money.limit - money.spent
        if left <= 0 or (model.prompt_cost is not None and model.prompt_cost > left):
            return excluded(
                "over_budget", f"{left:f} USD are left, and the prompt alone costs {model.prompt_cost or 0:f}"
            )
    limit = model.limit
    if limit is not None and limit.until_ms > now_ms and limit.state != "low":
        wait = (limit.until_ms - now_ms) / 1000
        reason: ExclusionReason = "rate_limited" if limit.state == "limited" else "quota_blocked"
        return excluded(reason, f"for {wait:.0f} more seconds, by its provider's word")
    return None


def _worth_a_wait(models: Sequence[ModelFacts], against: Sequence[ExcludedModel | None]) -> list[int]:
    """The models that nothing but a wait speaks against, the one that is free first at the front."""
    waits = [
        (model.limit.until_ms, place)
        for place, (model, why) in enumerate(zip(models, against, strict=True))
        if why is not None and why.reason in ("rate_limited", "quota_blocked") and model.limit is not None
    ]
    return [place for _, place in sorted(waits)]


def _candidate(model: ModelFacts) -> ModelCandidate:
    return _model_candidate(
        model_ref=model.ref,
        capabilities=tuple(name for name in CAPABILITIES if name in model.capabilities) if model.capabilities else (),
        declared=model.capabilities is not None,
        context_window=model.context_window,
        price_known=model.price_known,
        limit_state=model.limit.state if model.limit is not None else "unknown",
    )


# --- words ------------------------------------------------------------------------------------------------------------


def _resolved(
    routing_id: str,
    provider: str,
    name: str,
    needs: Requirements,
    candidates: tuple[ModelCandidate, ...],
    excluded: tuple[ExcludedModel, ...],
) -> RoutingCandidatesResolved:
    return _candidates_resolved(
        routing_id=routing_id,
        requested_provider=provider or None,
        requested_model=name or None,
        required_capabilities=needs.capabilities,
        candidates=candidates,
        excluded=excluded,
    )


def _mode(is_requested: bool, count: int, source: Source) -> RoutingMode:
    if count == 1:
        return "single_candidate"
    if not is_requested:
        return "fallback"
    return "default" if source == "runtime" else "explicit"


def _reason(
    selected: ModelFacts,
    requested: str,
    free: Sequence[ModelFacts],
    excluded: Sequence[ExcludedModel],
    gap: Sequence[str],
) -> str:
    if selected.ref == requested:
        said = "it is the model that was asked for"
    else:
        said = f"it is the first of the chain that can be asked in the place of {requested}"
    if len(free) == 1:
        said += ", and the only candidate"
    if selected.limit is not None and selected.limit.state == "limited":
        said += "; it is over its rate limit, and no other can be asked"
    if gap:
        said += f"; the caller accepts that {', '.join(gap)} may be missing"
    return f"{said}; left out: {'; '.join(map(_words, excluded))}" if excluded else said


def _words(excluded: ExcludedModel) -> str:
    return f"{excluded.model_ref}: {excluded.reason}" + (f" ({excluded.detail})" if excluded.detail else "")
