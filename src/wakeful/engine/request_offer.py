"""What a level's requests offer a model: its tools, those that the provider runs, and the settings."""

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.injected_fields import shown_tools
from wakeful.decisions.levels import Level, artifacts_of
from wakeful.decisions.policy.server_tools import NOTHING, ProviderOffer, offered_to_provider
from wakeful.decisions.policy.verdict import CompiledPolicy, with_answers
from wakeful.engine.settings_left_out import settings_for
from wakeful.engine.turn_work import TurnWork
from wakeful.ports import Model
from wakeful.tools.artifact_reader import reader_declaration
from wakeful.tools.results import READ_ARTIFACT

USUAL_SEARCHES = 5
"""Money is held for so many searches of one request, where `max_uses` does not say."""


class RequestTerms(NamedTuple):
    """What is the same in every request of a level to one model."""

    settings: ModelSettings
    withheld: tuple[str, ...]
    tools: Sequence[ToolDeclaration]
    accepted_gap: frozenset[str]
    more_candidates: bool


class RequestOffer:
    """The tools and settings of a level's requests."""

    def __init__(self, work: TurnWork, config: TurnConfig, level: Level) -> None:
        self._work = work
        self._config = config
        self._level_id = level.id
        shown = shown_tools(config.tools, config.injected_tool_args)
        self._searches = [tool for tool in shown if tool.server is not None]
        """Tools that the provider runs."""
        self._tools = tuple(tool for tool in shown if tool.server is None) if self._searches else shown
        self._terms: dict[int, RequestTerms] = {}
        """By the model's place in the chain."""
        self._with_reader: tuple[ToolDeclaration, ...] | None = None
        self._with_asks: tuple[ToolDeclaration, ...] = ()

    @property
    def has_tools(self) -> bool:
        return bool(self._tools)

    def terms_of(self, candidate: int, model: Model) -> RequestTerms:
        """What is the same in every request to that model; made once."""
        known = self._terms.get(candidate)
        if known is not None:
            return known
        models = self._work.code.models_of(self._work.state.level(self._level_id))
        settings = settings_for(model, self._config, models)
        tools = self._tools if takes_tools(model) else ()
        gap, more_candidates = frozenset(self._config.accept_gap), candidate + 1 < len(models)
        terms = self._terms[candidate] = RequestTerms(settings.sent, settings.withheld, tools, gap, more_candidates)
        return terms

    def tools(self, terms: RequestTerms, asks: Sequence[ToolDeclaration] = ()) -> Sequence[ToolDeclaration]:
        """The level's tools, `read_artifact` once output was spilled, and the calls that ask for a search."""
        if asks:
            known = (*self.tools(terms), *asks)
            if self._with_asks != known:  # the very same tuple in each request: encoders go by it
                self._with_asks = known
            return self._with_asks
        tools = terms.tools
        if (
            not tools
            or not artifacts_of(self._work.state.level(self._level_id))
            or self._config.tool(READ_ARTIFACT) is not None
        ):
            return tools
        if self._with_reader is None:
            self._with_reader = (*tools, reader_declaration())
        return self._with_reader

    def server_tools(self, model: Model) -> ProviderOffer:
        """What the provider may run by itself in the next request, by the policy and by what was seen until now."""
        if not self._searches:
            return NOTHING
        state, config = self._work.state, self._config

        def policies() -> list[CompiledPolicy]:
            # Where another agent works for this turn, its own policy holds, and the turn's.
            root = state.config
            others = [root.policy] if root is not None and root.agent_name != config.agent_name else []
            rules = state.rules
            return [
                with_answers(each, config.tools, rules.standing, rules.revoked) for each in (config.policy, *others)
            ]

        return offered_to_provider(
            self._searches,
            policies,
            derived_from=state.terms.derived_from,
            exposure=state.thread.exposure,
            now=self._work.clock.now() / 1_000_000,
            granted=state.rules.searches,
            may_ask=bool(getattr(model, "searches", False)) and takes_tools(model),
        )

    def most_searches(self, model: Model) -> int:
        """How many searches money is held for in the next request: as many as are allowed, or a usual number."""
        if not self._searches or not getattr(model, "searches", False):
            return 0
        return sum(tool.max_uses or USUAL_SEARCHES for tool in self.server_tools(model).tools)


def takes_tools(model: Model) -> bool:
    """A model that cannot call tools still answers; what a model does not say it cannot do, it is asked to do."""
    profile = getattr(model, "profile", None)
    return profile is None or bool(profile.tools)
