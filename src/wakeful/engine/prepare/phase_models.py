"""Who plans and who summarises in a turn, where that is somebody else than the agent's own model.

Asked for before a message is taken, and again when its turn is taken up: what cannot be asked is refused by the name
of its field, before anything is asked.
"""

from typing import Any, NamedTuple

from wakeful.contracts.errors import ContextWindowUnknown, InvalidConfig, WakefulError
from wakeful.engine.agent import Agent
from wakeful.engine.prepare.configuration import window_of
from wakeful.engine.run_request import Engine
from wakeful.ports import Model


class PhaseModels(NamedTuple):
    """Models for one phase alone; empty: the agent's own."""

    planner: list[Model]
    summariser: list[Model]


def phase_models(engine: Engine, agent: Agent[Any, Any]) -> PhaseModels:
    """Raises InvalidConfig, naming the field."""
    planning = agent.planning_model if agent.planning_enabled else None
    return PhaseModels(
        _apart(engine, agent, "planning_model", planning),
        _apart(engine, agent, "compaction.model", agent.compaction.model),
    )


def check_window(agent: Agent[Any, Any], model: Model | None) -> None:
    """How full the context is needs a window: raises ContextWindowUnknown where nobody knows the model's."""
    if model is None or agent.budget_awareness is None or window_of(model) is not None:
        return
    raise ContextWindowUnknown(
        f"Agent {agent.name!r}: budget_awareness={agent.budget_awareness!r} needs the context window of "
        f"{model.ref}, which nobody knows",
        "name a model whose window is known, give its profile a context_window, or leave budget_awareness out",
    )


def _apart(engine: Engine, agent: Agent[Any, Any], field: str, choice: str | None) -> list[Model]:
    if choice is None:
        return []
    try:
        return [engine.resolve_model(choice)]
    except WakefulError as error:
        raise InvalidConfig(
            f"Agent {agent.name!r}: {field}={choice!r} cannot be used: {error.message}",
            error.hint or f"name another model, or leave {field} out to use the agent's own",
        ) from error
