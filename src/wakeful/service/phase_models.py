"""The models of a turn: who is asked, and who plans and summarises where that is somebody else.

Asked for before a message is taken, and again when its turn is taken up: what cannot be asked is refused by the name
of its field, before anything is asked.
"""

from typing import Any, NamedTuple

from wakeful.agents.definition import Agent
from wakeful.contracts.errors import ContextWindowUnknown, InvalidConfig, WakefulError
from wakeful.decisions.compaction import share
from wakeful.ports import Model
from wakeful.service.requests import Runtime


class TurnModels(NamedTuple):
    """Who is asked in a turn."""

    models: list[Model]
    """The model and its fallbacks, in order."""
    planner: list[Model]
    """Empty: the model itself."""
    summariser: list[Model]
    """Empty: the model itself."""
    window: int | None
    """How many tokens the model can be shown, where it says so."""


def models_of(runtime: Runtime, agent: Agent[Any, Any]) -> TurnModels:
    """Raises InvalidConfig, naming the field; ContextWindowUnknown where a limit needs a window nobody knows."""
    models = [runtime.resolve_model(choice) for choice in (agent.model, *agent.fallbacks)]
    planner = _apart(runtime, agent, "planning_model", agent.planning_model if agent.planning_enabled else None)
    summariser = _apart(runtime, agent, "compaction.model", agent.compaction.model)
    window = _window(models[0])
    if share(agent.budget_awareness) is not None and window is None:
        raise ContextWindowUnknown(
            f"Agent {agent.name!r}: budget_awareness={agent.budget_awareness!r} needs the context window of "
            f"{models[0].ref}, which nobody knows",
            "name a model whose window is known, give its profile a context_window, or leave budget_awareness out",
        )
    return TurnModels(models, planner, summariser, window)


def _apart(runtime: Runtime, agent: Agent[Any, Any], field: str, choice: str | None) -> list[Model]:
    """A model for one phase alone."""
    if choice is None:
        return []
    try:
        return [runtime.resolve_model(choice)]
    except WakefulError as error:
        raise InvalidConfig(
            f"Agent {agent.name!r}: {field}={choice!r} cannot be used: {error.message}",
            error.hint or f"name another model, or leave {field} out to use the agent's own",
        ) from error


def _window(model: Model) -> int | None:
    profile = getattr(model, "profile", None)
    found = getattr(profile, "context_window", None) if profile is not None else getattr(model, "context_window", None)
    return found if isinstance(found, int) else None
