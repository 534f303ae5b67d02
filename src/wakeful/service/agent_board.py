"""The board at which models look at agents: an agent is shown itself and those that it made, and no other."""

from typing import Any

from wakeful.engine.run_request import Engine
from wakeful.service.queries.agent_details import agent_details, identity_of
from wakeful.views.runtime_records import AgentGetResult


class RuntimeAgentBoard:
    """For the turns of one runtime. `engine` is set when there is one: an engine knows its board."""

    engine: Engine

    async def get(self, turn_id: str, agent_id: str | None) -> dict[str, Any] | None:
        store = self.engine.store
        turn = await store.turn(turn_id)
        row = None if turn is None else await store.runtime_agent(agent_id or turn.agent_id)
        if turn is None or row is None or turn.agent_id not in (row.agent_id, row.parent):
            return None
        found = await agent_details(self.engine, row.agent_id)
        shown = AgentGetResult(
            identity=identity_of(row),
            agent_home=found.agent_home,
            state=found.state,
            model=found.model,
            closure=found.closure,
            children=found.children,
        )
        return shown.model_dump(mode="json", exclude_none=True)
