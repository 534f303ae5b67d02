"""The agents of a runtime, as `Runtime` has them: made, read, changed, paused, stopped and let run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wakeful.contracts.values import JsonValue

if TYPE_CHECKING:
    from wakeful.service import FileProblem
    from wakeful.service.living_runtime import LivingRuntime
    from wakeful.views.runtime_records import AgentRecord


class LivingAgents:
    """What `Runtime` can do with its agents, besides talking to them."""

    async def agents(self, *, private: bool = False) -> "list[AgentRecord]":
        """The public agents of the store, the oldest first: what each is, and how it stands.

        With `private`, also those that belong to another agent.
        """
        from wakeful.service.queries.agent_records import agent_records

        found, tally = await agent_records(self._here.engine, private=private), self._here.refusals
        return [each.model_copy(update={"refused": await tally.refused(each.agent, of=each.refused)}) for each in found]

    async def agent(self, agent: str | None = None) -> "AgentRecord":
        """One agent, a private one as well; without a name the default agent. Raises AgentNotFound."""
        from wakeful.service import default_agent_id
        from wakeful.service.queries.agent_records import agent_record

        return await agent_record(self._here.engine, agent if agent is not None else default_agent_id())

    async def create(self, definition: Mapping[str, Any], *, by: str = "operator") -> "AgentRecord":
        """A new agent from data, with the fields of an agent's file. It is kept in the store, and runs from now on.

        Raises InvalidConfig or UnknownTool, naming the field, or InvalidRequest for a name that is taken.
        """
        from wakeful.service.queries.agent_records import record_of

        return await record_of(self._here.engine, await self._here.supply.create(definition, by=by))

    async def update(self, agent: str, **changes: JsonValue) -> "AgentRecord":
        """Change fields of an agent that was made by `create`; turns that begin from now on are run with them.

        Raises InvalidRequest for an agent of a file or of the program, naming where it is defined.
        """
        from wakeful.service.queries.agent_records import record_of

        return await record_of(self._here.engine, await self._here.supply.update(agent, changes))

    async def definition(self, agent: str, revision: str | None = None) -> dict[str, Any]:
        """An agent of a file or of `create` as data: as it is, or as it was at a revision."""
        from wakeful.service.commands.agents import agent_named

        row = await agent_named(self._here.engine.store, agent)
        return await self._here.supply.definition(revision or row.revision)

    async def reload(self) -> "list[FileProblem]":
        """Read the files of agents again. The files that cannot be loaded; their agents run on as they were."""
        return await self._here.supply.reload()

    def problems(self) -> "list[FileProblem]":
        """The files of agents that could not be loaded."""
        return list(self._here.supply.problems)

    async def pause(
        self, agent: str, *, seconds: float | None = None, by: str = "operator", reason: str = ""
    ) -> "AgentRecord":
        """Run nothing of an agent and keep everything that comes. Turns that run rest before their next step.

        With `seconds` it runs again by itself after that time; without, when somebody says `resume`.
        """
        from wakeful.service.queries.agent_records import record_of

        return await record_of(self._here.engine, await self._here.pause(agent, by=by, reason=reason, seconds=seconds))

    async def stop(self, agent: str, *, by: str = "operator", reason: str = "") -> "AgentRecord":
        """Stop an agent until `resume`: its turns are stopped, and messages from outside are refused."""
        from wakeful.service.queries.agent_records import record_of

        return await record_of(self._here.engine, await self._here.stop(agent, by=by, reason=reason))

    async def resume(self, agent: str, *, by: str = "operator") -> "AgentRecord":
        """Let a paused or stopped agent run again, with everything that waited for it."""
        from wakeful.service.queries.agent_records import record_of

        return await record_of(self._here.engine, await self._here.resume(agent, by=by))

    @property
    def _here(self) -> "LivingRuntime":
        raise NotImplementedError
