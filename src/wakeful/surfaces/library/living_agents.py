"""The agents of a runtime, as `Runtime` has them: made, read, changed, paused, archived; their tasks and children."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wakeful.contracts.values import JsonValue
from wakeful.surfaces.library.argument_checks import checked_arguments
from wakeful.surfaces.library.tool_refusals import open_to_tools

if TYPE_CHECKING:
    from wakeful.contracts.file_problems import FileProblem
    from wakeful.service.living_runtime import LivingRuntime
    from wakeful.views.agent_state import AgentModelState
    from wakeful.views.child_agents import ActiveChild
    from wakeful.views.runtime_records import AgentDetails, AgentRecord, AgentRevision
    from wakeful.views.store_records import DeletedThread
    from wakeful.views.task_records import TaskOutput, TaskRecord


@checked_arguments
@open_to_tools(
    "agents", "agent", "revisions", "diff", "definition", "problems", "tasks", "task", "task_output", "children"
)
class LivingAgents:
    """What `Runtime` can do with its agents, besides talking to them."""

    async def agents(self, *, private: bool = False, archived: bool = False) -> "list[AgentRecord]":
        """The public agents of the store, the oldest first: what each is, and how it stands.

        With `private`, also those that belong to another agent; with `archived`, also archived agents.
        """
        from wakeful.service.queries.agent_records import agent_records

        found = await agent_records(self._here.engine, private=private, archived=archived)
        tally = self._here.refusals
        return [await tally.counted(each) for each in found]

    async def agent(self, agent: str | None = None) -> "AgentDetails":
        """One agent in full, a private one as well; without a name the default agent. Raises AgentNotFound."""
        from wakeful.service import default_agent_id
        from wakeful.service.queries.agent_details import agent_details

        found = await agent_details(self._here.engine, agent if agent is not None else default_agent_id())
        return await self._here.refusals.counted(found)

    async def create(
        self, definition: Mapping[str, Any], *, template: str | None = None, by: str = "program"
    ) -> "AgentRecord":
        """A new agent from data, with the fields of an agent's file. It is kept in the store, and runs from now on.

        `template` names what its home is made from: `wakeful-default`, `wakeful-developer`, another folder of
        `~/.agents/templates`, or the absolute path of a folder with an `AGENTS.md`. Raises InvalidConfig or
        UnknownTool, naming the field, or InvalidRequest for a name that is taken or a template that cannot be had;
        then nothing was made.
        """
        from wakeful.service.queries.agent_records import record_of

        row = await self._here.supply.create(definition, by=by, template=template)
        return await record_of(self._here.engine, row)

    async def set_model(self, agent: str, model: str | None, *, by: str = "program") -> "AgentModelState":
        """Give one agent another model, for turns that begin from now on; None: the model of its definition again.

        It survives restarts. Raises AgentNotFound, UnknownProvider or InvalidConfig.
        """
        from wakeful.service.agent_models import change_model
        from wakeful.service.queries.agent_details import agent_details

        await change_model(self._here.engine, agent, model, by=by)
        return (await agent_details(self._here.engine, agent)).model

    async def archive(self, agent: str, *, by: str = "program", reason: str = "") -> "AgentRecord":
        """Put an agent away: it is in no listing and does nothing until `resume`.

        Raises InvalidRequest with what is open, such as a turn, a task or a work item.
        """
        from wakeful.service.commands.agent_removal import archive_agent
        from wakeful.service.queries.agent_records import record_of

        return await record_of(self._here.engine, await archive_agent(self._here.engine, agent, by=by, reason=reason))

    async def delete(self, agent: str, *, by: str = "program", reason: str = "") -> None:
        """Delete an agent that was made by `create`. Its log stays, and its name is not given again; its home is moved
        to `agents/.deleted`.

        Raises InvalidRequest with what is open, or with where the agent is defined.
        """
        await self._here.supply.delete(agent, by=by, reason=reason)

    async def delete_thread(
        self, thread: str, agent: str | None = None, *, by: str = "program", reason: str = ""
    ) -> "DeletedThread":
        """Delete a conversation: the next message under its name begins an empty one.

        Its messages leave the store with the next pass of retention; briefs, costs and approvals stay. Deleting it
        again changes nothing. Raises ThreadNotFound, or InvalidRequest for `main`, or with what is open.
        """
        from wakeful.service.commands.thread_removal import delete_thread

        return await delete_thread(self._here.engine, thread, agent, by=by, reason=reason)

    async def revisions(self, agent: str) -> "list[AgentRevision]":
        """The definitions of an agent that were in force, the newest first, each with its turns."""
        from wakeful.service.queries.agent_revisions import revisions_of

        return await revisions_of(self._here.engine, agent)

    async def diff(self, agent: str, old: str | None = None, new: str | None = None) -> str:
        """What changed from one revision of an agent to another; without names, with its newest change."""
        from wakeful.service.queries.agent_revisions import difference

        return await difference(self._here.engine, agent, old, new)

    async def update(self, agent: str, **changes: JsonValue) -> "AgentRecord":
        """Change fields of an agent that was made by `create`; turns that begin from now on are run with them.

        Raises InvalidRequest for an agent of a file or of the program, naming where it is defined.
        """
        from wakeful.service.queries.agent_records import record_of

        return await record_of(self._here.engine, await self._here.supply.update(agent, changes))

    async def definition(self, agent: str, revision: str | None = None) -> dict[str, Any]:
        """An agent of a file or of `create` as data: as it is, or as it was at a revision."""
        from wakeful.service.queries.agent_revisions import revision_named

        return await self._here.supply.definition(await revision_named(self._here.engine, agent, revision))

    async def reload(self) -> "list[FileProblem]":
        """Read the files of agents again. The files that cannot be loaded; their agents run on as they were."""
        return await self._here.supply.reload()

    def problems(self) -> "list[FileProblem]":
        """The files of agents that could not be loaded."""
        return list(self._here.supply.problems)

    async def pause(
        self, agent: str, *, seconds: float | None = None, by: str = "program", reason: str = ""
    ) -> "AgentRecord":
        """Run nothing of an agent and keep everything that comes. Turns that run rest before their next step.

        With `seconds` it runs again by itself after that time; without, when somebody says `resume`. Raises
        AgentStopped for one that is stopped or archived: a pause would let it take messages again.
        """
        from wakeful.service.queries.agent_records import record_of

        return await record_of(self._here.engine, await self._here.pause(agent, by=by, reason=reason, seconds=seconds))

    async def stop(self, agent: str, *, by: str = "program", reason: str = "") -> "AgentRecord":
        """Stop an agent until `resume`: its turns are stopped, and messages from outside are refused."""
        from wakeful.service.queries.agent_records import record_of

        return await record_of(self._here.engine, await self._here.stop(agent, by=by, reason=reason))

    async def resume(self, agent: str, *, by: str = "program") -> "AgentRecord":
        """Let a paused or stopped agent run again, with everything that waited for it."""
        from wakeful.service.queries.agent_records import record_of

        return await record_of(self._here.engine, await self._here.resume(agent, by=by))

    async def tasks(self, agent: str | None = None, *, over: bool = False, limit: int = 100) -> "list[TaskRecord]":
        """Commands in the background and child agents, the newest first: of one agent, or of all.

        With `over`, those of an agent that have ended too. Raises AgentNotFound.
        """
        from wakeful.service.queries.tasks import tasks_of

        return await tasks_of(self._here.engine, agent, over=over, limit=limit)

    async def task(self, task_id: str) -> "TaskRecord":
        """One task: what it is, how it stands, how it ended. Raises InvalidRequest."""
        from wakeful.service.commands.agents import task_named
        from wakeful.service.queries.tasks import task_record

        engine = self._here.engine
        return await task_record(engine, await task_named(engine.store, task_id))

    async def task_output(self, task_id: str) -> "TaskOutput":
        """Both ends of what a task has said; of a child agent, its last words. Raises InvalidRequest."""
        from wakeful.service.queries.tasks import output_of

        return await output_of(self._here.engine, task_id)

    async def stop_task(self, task_id: str, *, reason: str = "asked for by the operator") -> str:
        """Stop a task of any agent: a command, or a child agent with everything it has begun. Its agent is told.

        Returns the task's status. Raises InvalidRequest for one that is not there.
        """
        return await self._here.stop_task(task_id, reason=reason)

    async def children(self, agent: str) -> "list[ActiveChild]":
        """The child agents of an agent that are not over, the oldest first: what each is, and how it is doing."""
        return await self._here.children(agent)

    @property
    def _here(self) -> "LivingRuntime":
        raise NotImplementedError
