"""The models of a turn: whom its agent may ask, what is known of each of them, and the decision that follows from it.

Whom it may ask is found out before a message is taken: what cannot be asked is refused by the name of its field. What
is known is collected when a turn begins, and again when it is taken up: then the decision on record stands, unless what
the turn needs or which models there are has changed. Limits that providers named hold until the time they named.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.budgets import Limits
from wakeful.contracts.content import File, Image
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.errors import ContextWindowUnknown, InvalidConfig, KeyMissing, ModelFailure, WakefulError
from wakeful.contracts.events import RoutingCandidatesResolved, RoutingDecided
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import spelled_reference
from wakeful.decisions.limits import known_limits
from wakeful.decisions.prompt_size import characters
from wakeful.decisions.routing import (
    KnownLimit,
    ModelFacts,
    MoneyLeft,
    Requirements,
    Route,
    RoutingFact,
    Source,
    attachments,
    requirements,
    route,
    same_candidates,
)
from wakeful.engine.agent import Agent
from wakeful.engine.prepare.conversation import Conversation
from wakeful.engine.run_request import Engine, ResolveModel
from wakeful.ports import Claim, Model, RefusedAttachment

RECENT = 400
"""How many of an agent's newest events are looked through for what providers said about their limits."""
CHARS_A_TOKEN = 4
"""Where too long a prompt would rule a model out, it is guessed short: the provider has the last word."""
_FIELDS = {
    "tools": "tools",
    "parallel_tool_calls": "parallel_tool_calls",
    "forced_tool_choice": "forced_tool_choice",
    "vision": "images",
    "files": "files",
    "audio": "audio",
    "structured_output": "structured_output",
    "reasoning": "reasoning",
}
"""A capability, and the field of a model's profile that declares it."""


class Choice(NamedTuple):
    """A model of the chain; without a key there is its name alone."""

    ref: str
    model: Model | None
    missing: KeyMissing | None = None


class ModelChoices(NamedTuple):
    """Whom an agent may ask."""

    chain: Sequence[Choice]
    """Its model and the fallbacks."""
    planner: Sequence[Model]
    """Who plans, where that is somebody else; empty: the agent's own."""
    summariser: Sequence[Model]
    """The same for who summarises."""

    @property
    def models(self) -> list[Model]:
        """Those of the chain that have their keys."""
        return [each.model for each in self.chain if each.model is not None]


class ModelRoute(NamedTuple):
    """The models to ask, in order, and the facts that say why these."""

    models: tuple[Model, ...]
    facts: tuple[RoutingFact, ...]
    """Empty when the decision on record stands."""
    window: int | None = None
    """What the first of them can be shown, in tokens; None where nobody knows."""


def model_choices(resolve: ResolveModel, agent: Agent[Any, Any]) -> ModelChoices:
    """Raises KeyMissing, InvalidConfig with the name of the field, and what is wrong with a name."""
    chain = choices_of(resolve, agent)
    planning = agent.planning_model if agent.planning_enabled else None
    if planning is None and agent.compaction.model is None:
        return ModelChoices(chain, (), ())
    return ModelChoices(
        chain,
        _apart(resolve, agent, "planning_model", planning),
        _apart(resolve, agent, "compaction.model", agent.compaction.model),
    )


def choices_of(resolve: ResolveModel, agent: Agent[Any, Any]) -> list[Choice]:
    """The agent's chain. A model whose key is missing stays in it, to be left out with that reason.

    Raises KeyMissing when no model of the chain has its key, and what is wrong with a name at once.
    """
    found = [_choice(resolve, each) for each in (agent.model, *agent.fallbacks)]
    first = found[0]
    if first.missing is not None and all(each.model is None for each in found):
        raise first.missing
    return found


def _choice(resolve: ResolveModel, named: str | Model) -> Choice:
    try:
        model = resolve(named)
        return Choice(model.ref, model)
    except KeyMissing as missing:
        assert isinstance(named, str)
        return Choice(spelled_reference(named), None, missing)


def _apart(resolve: ResolveModel, agent: Agent[Any, Any], field: str, choice: str | None) -> list[Model]:
    if choice is None:
        return []
    try:
        return [resolve(choice)]
    except WakefulError as error:
        raise InvalidConfig(
            f"Agent {agent.name!r}: {field}={choice!r} cannot be used: {error.message}",
            error.hint or f"name another model, or leave {field} out to use the agent's own",
        ) from error


def check_window(agent: Agent[Any, Any], model: Model | None) -> None:
    """How full the context is needs a window: raises ContextWindowUnknown where nobody knows the model's."""
    if model is None or agent.budget_awareness is None or window_of(model) is not None:
        return
    raise ContextWindowUnknown(
        f"Agent {agent.name!r}: budget_awareness={agent.budget_awareness!r} needs the context window of "
        f"{model.ref}, which is not known",
        "name a model whose window is known, give its profile a context_window, or leave budget_awareness out",
    )


def window_of(model: Model) -> int | None:
    """How much the model can be shown, where it says so."""
    found = getattr(model, "context_window", None)
    if found is None:
        found = getattr(getattr(model, "profile", None), "context_window", None)
    return found if isinstance(found, int) else None


class Turn(NamedTuple):
    """What routing has to know of a turn."""

    turn_id: str
    config: TurnConfig
    limits: Limits
    spent: Decimal
    messages: Sequence[UserItem]
    facts: Sequence[StoredFact]
    """Of this turn, as far as there are any."""
    recent: Sequence[StoredFact]
    """The newest of the agent's."""
    source: Source = "agent_config"
    windowed: bool = False
    """A spend window holds for it."""


async def turn_models(
    engine: Engine,
    agent: Agent[Any, Any],
    choices: ModelChoices,
    claim: Claim,
    config: TurnConfig,
    conversation: Conversation,
    limits: Limits,
    *,
    source: Source,
    windowed: bool,
) -> ModelRoute:
    """Whom this turn asks. Raises ContextWindowUnknown where the window has to be known and is not."""
    models = choices.models
    await engine.pricing.ready([*models, *choices.planner, *choices.summariser])
    if config.workflow is not None:
        routed = ModelRoute(tuple(models), ())  # its nodes ask models of their own, or none
    else:
        folded = conversation.folded
        recent: Sequence[StoredFact] = folded.thread.limits
        for model in models:
            if hasattr(model, "profile"):  # others have no limits that anybody has told of
                recent = await engine.store.read(claim.agent_id, after=max(0, claim.seen - RECENT))
                break
        turn = Turn(
            claim.turn_id,
            config,
            folded.state.limits if folded.started is not None else limits,
            folded.state.bill.cost,
            [message.item for message in conversation.messages],
            conversation.of_turn,
            recent,
            source,
            windowed,
        )
        routed = routed_models(engine, choices.chain, turn)
    if not routed.models:
        return routed
    check_window(agent, routed.models[0])
    return routed._replace(window=window_of(routed.models[0]))


def routed_models(engine: Engine, choices: Sequence[Choice], turn: Turn) -> ModelRoute:
    """The models of a turn that begins, or of one that is taken up."""
    now = engine.clock.now()
    before = _on_record(turn.facts)
    config = turn.config
    needs = Requirements(
        requirements(turn.messages, config.tool_names, config.require),
        _prompt_tokens(turn) if [each for each in choices if _profile(each) is not None] else 0,
        frozenset(config.accept_gap),
    )
    money = MoneyLeft(
        Decimal(turn.limits.usd) if turn.limits.usd is not None else None,
        turn.spent,
        turn.limits.unpriced_token_ceiling is not None,
        turn.windowed,
    )
    limits = known_limits(turn.recent, now // 1000) if before is None else {}

    def decide(known: Mapping[str, KnownLimit]) -> Route:
        models = [_known(engine, each, turn, needs.prompt_tokens, known, now) for each in choices]
        return route(f"route_{turn.turn_id}", models, needs, money, now // 1000, source=turn.source)

    decided = decide(limits)
    if before is not None:
        resolved, chain = before
        anew = decided.facts[0]
        if isinstance(anew, RoutingCandidatesResolved) and same_candidates(resolved, anew):
            return ModelRoute(_chain(chain, choices), ())
        decided = decide(known_limits(turn.recent, now // 1000))
    return ModelRoute(tuple([model for place in decided.places if (model := choices[place].model)]), decided.facts)


def _on_record(facts: Sequence[StoredFact]) -> tuple[RoutingCandidatesResolved, tuple[str, ...]] | None:
    """The newest decision of the turn: what it chose from, and the chain it came to."""
    resolved: RoutingCandidatesResolved | None = None
    chain: tuple[str, ...] | None = None
    for _, _, fact in facts:
        match fact.event:
            case RoutingCandidatesResolved() as event:
                resolved = event
            case RoutingDecided() as event:
                chain = (event.selected_model_ref, *event.fallback_chain)
    return (resolved, chain) if resolved is not None and chain is not None else None


def _chain(refs: Sequence[str], choices: Sequence[Choice]) -> tuple[Model, ...]:
    """The models of a chain on record. Two models may have the same name: each place gets its own."""
    left = list(choices)
    found: list[Model] = []
    for ref in refs:
        choice = next((each for each in left if each.ref == ref and each.model is not None), None)
        if choice is not None and choice.model is not None:
            left.remove(choice)
            found.append(choice.model)
    return tuple(found)


# --- what is known of a model -----------------------------------------------------------------------------------------


def _known(
    engine: Engine, choice: Choice, turn: Turn, prompt_tokens: int, limits: Mapping[str, KnownLimit], now: int
) -> ModelFacts:
    if choice.model is None:
        words = choice.missing.message if choice.missing is not None else ""
        return ModelFacts(choice.ref, barred="no_credential", detail=words)
    model, profile = choice.model, _profile(choice)
    refuses: Callable[[ModelSettings], ModelFailure | None] | None = getattr(model, "refusal", None)
    refusal = refuses(turn.config.model_settings) if refuses is not None else None  # see `ports.Refusing`
    ruled_out = engine.model_rules.against(choice.ref, leaves_machine=getattr(model, "leaves_machine", False))
    if ruled_out is not None:
        return ModelFacts(choice.ref, barred=ruled_out.reason, detail=ruled_out.detail)
    untaken: Callable[[Image | File], RefusedAttachment | None] | None = getattr(
        model, "untaken", None
    )  # see `ports.Selective`
    if refusal is None and untaken is not None:
        gaps = (gap for part in attachments(turn.messages) if (gap := untaken(part)) is not None)
        gap = next((gap for gap in gaps if gap.capability not in turn.config.accept_gap), None)
        if gap is not None:
            return ModelFacts(choice.ref, barred="capability_gap", detail=gap.why)
    cost = engine.pricing.estimate(model, lambda: prompt_tokens, 0, now)
    return ModelFacts(
        choice.ref,
        capabilities=None if profile is None else _capabilities(profile),
        context_window=getattr(profile, "context_window", None),
        price_known=cost is not None,
        prompt_cost=Decimal(cost.amount) if cost is not None else None,
        unpriced_hint=getattr(model, "unpriced_hint", ""),
        barred="unsupported_transport" if refusal is not None else None,
        detail=refusal.message if refusal is not None else "",
        limit=limits.get(choice.ref),
    )


def _profile(choice: Choice) -> object | None:
    """What the model says of itself; None where nobody has declared anything, as for a model of the host's own."""
    return getattr(choice.model, "profile", None)


def _capabilities(profile: object) -> frozenset[str]:
    """What is declared; what is not counts as not there. Every format streams."""
    declared = {name for name, field in _FIELDS.items() if getattr(profile, field, False)}
    return frozenset({*declared, "streaming"})


def _prompt_tokens(turn: Turn) -> int:
    """The part of the prompt that no summary can fold."""
    config = turn.config
    tools = sum(len(tool.name) + len(tool.description) + len(str(tool.input_schema)) for tool in config.tools)
    return (len(config.instructions) + tools + characters(turn.messages)) // CHARS_A_TOKEN
