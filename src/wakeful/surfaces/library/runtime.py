"""`Runtime`: agents that live. They wake when something is sent to them or a time has come, and sleep in between."""

import reprlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from wakeful.contracts.budgets import Budget
from wakeful.contracts.content import Prompt
from wakeful.contracts.errors import InvalidRequest, InvalidValue
from wakeful.contracts.messages import Priority
from wakeful.contracts.values import JsonValue
from wakeful.service import Agent, Tool, checked_notify
from wakeful.surfaces.library.argument_checks import checked_arguments
from wakeful.surfaces.library.living_agents import LivingAgents
from wakeful.surfaces.library.runtime_feed import RuntimeFeed
from wakeful.surfaces.library.runtime_triggers import RuntimeTriggers
from wakeful.surfaces.library.runtime_workflows import RuntimeWorkflows
from wakeful.surfaces.library.runtime_workspaces import RuntimeWorkspaces
from wakeful.surfaces.library.tool_refusals import open_to_tools

if TYPE_CHECKING:
    from wakeful.contracts.envelope import RuntimeEvent
    from wakeful.contracts.file_problems import FilesReport
    from wakeful.contracts.notices import NotifyTarget
    from wakeful.contracts.retention import Retention, RetentionReport
    from wakeful.contracts.waking import CatchUp, ClosureDecision
    from wakeful.service import Clock, Ids, Store
    from wakeful.service.living_runtime import LivingRuntime
    from wakeful.service.run_result import RunResult
    from wakeful.surfaces.library.memory_handle import MemoryHandle
    from wakeful.views.message_envelope import MessageEnvelope
    from wakeful.views.runtime_records import (
        AgentLife,
        BriefRecord,
        NoticeRecord,
        RuntimeHold,
        SentMessage,
        TimerRecord,
        WorkItemRecord,
    )
    from wakeful.views.trigger_records import DeliveryReceipt

STORE, AGENTS = "wakeful.db", "agents"
"""The database and the folder of files, in a home."""
_SENDING = ("send", "receive", "wake")
_READING = (
    *("message", "answer", "settled", "check", "notices", "timers", "work_items", "briefs"),
    *("memory", "closure", "why", "follow"),
)
"""What a tool of an agent may call."""


@checked_arguments
@open_to_tools(*_SENDING, *_READING)
class Runtime(LivingAgents, RuntimeFeed, RuntimeTriggers, RuntimeWorkflows, RuntimeWorkspaces):
    """Agents that live: `async with Runtime("home", agents=[ops]) as rt: await rt.send("ops", "Check the backups.")`.

    `home` is a folder, and its store is `wakeful.db` in it; `store` names another file, or a store that is open. Agents
    come from `agents`, from the files in `agents/` of the home, and from `create`; tools that files and data name are
    looked up in `tools`. One runtime at a time runs the agents of a store. Everything it knows is in the log: killed,
    it is opened again and goes on. On closing, what runs has `grace` seconds to come to rest; then it is let go, and
    the next runtime takes it up.
    """

    def __init__(
        self,
        home: str | PathLike[str] | None = None,
        *,
        agents: Sequence[Agent[Any, Any]] = (),
        tools: Sequence[Tool[Any]] = (),
        store: "Store | str | PathLike[str] | None" = None,
        model: str | None = None,
        max_turns: int = 256,
        max_threads: int = 64,
        max_starts: int = 1_000,
        grace: float | None = 10.0,
        retention: "Retention | None" = None,
        notify: "NotifyTarget | Mapping[str, Any] | None" = None,
        public_url: str | None = None,
        clock: "Clock | None" = None,
        ids: "Ids | None" = None,
    ) -> None:
        """`model` is the model of the default agent, which is made when it is first sent something.

        At most `max_turns` run at the same time, and `max_threads` of one agent; what the runtime does itself (notices,
        reloads, the end of tasks) waits for none of them. At most `max_starts` begin within a second, agents in turns,
        so that an outage is not followed by a rush. `retention` says how long things are kept; without it `[retention]`
        of the owner's file does. `notify` is where notices go about agents that have no `notify` of their own:
        `{"to": URL or [COMMAND, ...], "on": [...]}`. `public_url` is where your front takes in deliveries for triggers;
        agents may then ask for their address. `clock` and `ids` are for tests.
        """
        if home is None and store is None:
            raise InvalidRequest(
                "Runtime() needs a home or a store", "Give it a folder for its home: Runtime('agents-home')"
            )
        if home is not None and store is not None:
            raise InvalidRequest(
                "Runtime() was given a home and a store", "Give one of them: a home has its own store."
            )
        if min(max_turns, max_threads, max_starts) < 1:
            given = f"max_turns={max_turns}, max_threads={max_threads}, max_starts={max_starts}"
            raise InvalidRequest(f"{given}: nothing could run", "Give 1 or more.")
        if public_url is not None and not public_url.startswith(("http://", "https://")):
            raise InvalidRequest(
                f"public_url={public_url!r} is not an address", "Give a whole one: https://hooks.example.org"
            )
        self._public_url = public_url or ""
        self._home = Path(fspath(home)) if home is not None else None
        self._store = store
        self._agents = tuple(agents)
        self._tools = tuple(tools)
        self._model = model
        self._limits = max_turns, max_threads, max_starts
        self._grace = grace
        self._retention = retention
        self._notify = checked_notify("Runtime(notify)", notify)
        self._clock, self._ids = clock, ids
        self._open = AsyncExitStack()
        self._living: LivingRuntime | None = None

    def check(self) -> "FilesReport":
        """Check the files of the home: `agents/*.yaml` and `wakeful.toml`. Each problem with its file, line and remedy.

        It can be asked before the runtime is opened, and writes nothing.
        """
        from wakeful.bootstrap.homes import check_home

        if self._home is None:
            raise InvalidRequest("this runtime has a store and no home, so no files", "Give it a home: Runtime('home')")
        return check_home(self._home, self._tools)

    async def __aenter__(self) -> "Runtime":
        from wakeful.bootstrap.runtimes import open_runtime
        from wakeful.service import Places

        store = self._store
        if store is None:
            assert self._home is not None
            self._home.mkdir(parents=True, exist_ok=True)
            store = self._home / STORE
        places = Places(*self._limits)
        opening = open_runtime(
            store,
            self._agents,
            tools=self._tools,
            folder=None if self._home is None else self._home / AGENTS,
            clock=self._clock,
            ids=self._ids,
            places=places,
            grace=self._grace,
            retention=self._retention,
            notify=self._notify,
            public_url=self._public_url,
        )
        self._living = await self._open.enter_async_context(opening)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._living = None
        await self._open.__aexit__(kind, error, trace)

    async def send(
        self,
        agent: str | None,
        prompt: Prompt,
        *,
        thread: str = "main",
        key: str | None = None,
        priority: Priority = "normal",
        sender: str | None = None,
        expires: datetime | None = None,
        context: Mapping[str, JsonValue] | None = None,
        correlation_id: str | None = None,
        causation_id: str | None = None,
        supersede: bool = False,
    ) -> "SentMessage":
        """Send an agent a message from its operator. When this returns, the message is safe and will be answered.

        `None` is the default agent; it is made on first use, where `Runtime(model=...)` says with which model. With
        `key`, the same line sent again is the same message. After `expires` no turn begins with it. With
        `priority="interject"` a running turn of the thread reads it with its next request; with
        `supersede`, the turns of the thread that began before it are stopped. `correlation_id` ties
        messages of one workflow together, `causation_id` names the message or task behind this one. Raises
        AgentNotFound, AgentStopped, or KeyReused when the key belongs to other words.
        """
        from wakeful.service.commands.agents import send_message
        from wakeful.service.queries.runtime_agents import sent_message

        if expires is not None and expires.tzinfo is None:
            raise InvalidRequest(f"expires={expires!r} has no time zone", "Give one, such as datetime.now(UTC).")
        due = None if expires is None else round(expires.timestamp() * 1_000_000)
        here = self._here
        name = await here.supply.addressee(agent, self._model)
        async with here.refusals.counting(name):
            row = await send_message(
                here.engine,
                name,
                prompt,
                thread=thread,
                key=key,
                priority=priority,
                sender=sender,
                expires_at=due,
                context=context,
                correlation_id=correlation_id,
                causation_id=causation_id,
                supersede=supersede,
            )
        return sent_message(row)

    async def receive(
        self,
        agent: str,
        body: JsonValue,
        *,
        channel: str | None = None,
        webhook: str | None = None,
        sender: str | None = None,
        event_type: str | None = None,
        verified: bool = False,
        thread: str = "main",
        key: str | None = None,
        priority: Priority = "normal",
        metadata: Mapping[str, JsonValue] | None = None,
        correlation_id: str | None = None,
        fields: Mapping[str, JsonValue] | None = None,
    ) -> "SentMessage":
        """Hand an agent what somebody outside said: a `channel` (a chat, a mailbox) or a `webhook` (a program).

        It is evidence to the agent, and never its operator's word. `verified=True` says that you checked a webhook's
        signature against a secret: then it is a signal of an integration. Data stays data until the model is shown it.
        `metadata` is kept, and routes nothing. `fields` are others that the sender set, as your front got them: a
        sender that claims an authority, another kind or a work item is refused. Raises InvalidValue, naming the field.
        """
        from wakeful.service.commands.agents import receive_message
        from wakeful.service.queries.runtime_agents import outside_arrival, sent_message

        async with self._here.refusals.counting(agent):
            arrival = outside_arrival(
                channel=channel,
                webhook=webhook,
                sender=sender,
                event_type=event_type,
                verified=verified,
                priority=priority,
                metadata=metadata,
                fields=fields,
            )
            row = await receive_message(
                self._here.engine, agent, body, arrival, thread=thread, key=key, correlation_id=correlation_id
            )
        return sent_message(row)

    async def message(self, message: "SentMessage | DeliveryReceipt | str") -> "MessageEnvelope":
        """Everything that is known of a message: its origin, whose word it is, how it came in, its body."""
        from wakeful.service.queries.runtime_agents import envelope_of

        return await envelope_of(self._here.engine.store, _message_id(message))

    async def answer(self, message: "SentMessage | DeliveryReceipt | str") -> "RunResult[Any]":
        """Wait until the turn that takes a message has ended or rests on somebody, and give its result. `message` is
        what `send` or `deliver` returned, or an id."""
        return await self._here.answer(_message_id(message))

    async def retry(
        self, turn: str, *, by: str = "program", budget: Budget | None = None, max_steps: int | None = None
    ) -> None:
        """Try a failed turn again. It goes on where it failed, and calls that have finished stay finished; `answer` of
        its message gives the result. After a limit, `budget` says what it may use in all. Raises RetryRefused.
        """
        from wakeful.service.queries.turns import find_turn

        row = await find_turn(self._here.engine.store, turn)
        await self._here.retry(row, by=by, budget=budget, max_steps=max_steps)

    async def compact(self, *, dry_run: bool = False) -> "RetentionReport":
        """Remove now what has reached its age, instead of waiting until the runtime does it by itself."""
        from wakeful.service.commands.store_upkeep import compact_store

        engine = self._here.engine
        return await compact_store(engine.store, engine.clock, self._here.retention(), dry_run=dry_run)

    async def pause_all(self, *, by: str = "program", reason: str = "") -> "RuntimeHold":
        """Pause every agent, those that are made later too, until `resume_all`. Running turns pause before their next
        step, and running commands are ended. Messages are kept.
        """
        return await self._here.hold("paused", by=by, reason=reason)

    async def stop_all(self, *, by: str = "program", reason: str = "") -> "RuntimeHold":
        """Stop every agent until `resume_all`: turns are cancelled, commands ended, messages from outside refused."""
        return await self._here.hold("stopped", by=by, reason=reason)

    async def resume_all(self, *, by: str = "program") -> "RuntimeHold":
        """Let all agents run again, but for those that were paused or stopped by name."""
        return await self._here.hold("running", by=by)

    async def notices(self, agent: str | None = None, *, limit: int = 100) -> "list[NoticeRecord]":
        """Notices about agents, the newest first: what each says, and whether it arrived."""
        from wakeful.service.queries.notices import notices_of

        return await notices_of(self._here.engine.store, agent, limit)

    async def wake(self, agent: str, reason: str = "", *, body: str | None = None, source: str | None = None) -> str:
        """Hint to an agent that something changed. It is looked at when the agent is free, together with other hints.

        With a `body` the agent is shown it, as something that came from outside, and a turn begins. Without one no
        model is asked. Returns the hint's id. Raises AgentNotFound or AgentStopped.
        """
        from wakeful.service.commands.agents import hint_agent

        async with self._here.refusals.counting(agent):
            return await hint_agent(self._here.engine, agent, reason=reason, body=body, source=source)

    async def arm_timer(
        self,
        agent: str,
        say: str,
        *,
        at: datetime | None = None,
        cron: str | None = None,
        timezone: str = "UTC",
        name: str = "",
        thread: str = "fresh",
        catch_up: "CatchUp" = "one",
        check: str | None = None,
        by: str = "program",
    ) -> "TimerRecord":
        """Wake an agent with these words at a time, or by a cron line in a time zone. It survives restarts.

        Each due time has a `thread` of its own, or speaks in the one that is named. `catch_up` says what becomes of due
        times that pass while nothing runs: `one` message for all of them, `all` (at most 24), or `none`. With `check`,
        a command is run in the agent's workspace first; if it ends with 0 and prints nothing, no model is asked. Raises
        InvalidRequest for a time that is past or a cron line that is never due, InvalidConfig for an unknown zone.
        """
        from wakeful.service.commands.agents import arm_for_agent
        from wakeful.service.queries.runtime_agents import timer_record

        if at is not None and at.tzinfo is None:
            raise InvalidRequest(f"at={at!r} has no time zone", "Give one, such as datetime.now(UTC).")
        row = await arm_for_agent(
            self._here.engine,
            agent,
            at=None if at is None else round(at.timestamp() * 1_000_000),
            cron=cron,
            timezone=timezone,
            say=say,
            name=name,
            thread=thread,
            catch_up=catch_up,
            check=check,
            armed_by=by,
        )
        return timer_record(row)

    async def cancel_timer(self, timer_id: str, *, by: str = "program", reason: str = "") -> "TimerRecord":
        """Let a timer be due no more. Raises InvalidRequest for one that is not there, or is over."""
        from wakeful.service import cancel_timer
        from wakeful.service.queries.runtime_agents import timer_record

        return timer_record(await cancel_timer(self._here.engine, timer_id, by=by, reason=reason))

    async def timers(self, agent: str | None = None) -> "list[TimerRecord]":
        """All timers that are armed, the next one first; of an agent, those that are over as well."""
        from wakeful.service.queries.runtime_agents import list_timers

        return await list_timers(self._here.engine, agent)

    async def enqueue(self, agent: str, objective: str, *, by: str = "program") -> "WorkItemRecord":
        """Put an objective into the queue of an agent with work items, without a message. An idle agent is woken for
        it; what it works on now stays its current item. Raises AgentNotFound, AgentStopped or InvalidRequest.
        """
        from wakeful.service.queries.work_items import work_item_record

        store = self._here.engine.store
        item = await self._here.enqueue(agent, objective, by=by)
        return await work_item_record(store, item, await store.current_work_item_id(agent))

    async def work_items(self, agent: str, *, completed: bool = False, limit: int = 100) -> "list[WorkItemRecord]":
        """An agent's open work items, or its completed ones with their reports, the newest first."""
        from wakeful.service.queries.work_items import work_items_of

        return await work_items_of(self._here.engine.store, agent, completed=completed, limit=limit)

    async def briefs(self, agent: str, *, limit: int = 100) -> "list[BriefRecord]":
        """An agent's briefs: results, failures, and what it wanted you to know. The newest first."""
        from wakeful.service.queries.work_items import briefs_of

        return await briefs_of(self._here.engine.store, agent, limit=limit)

    def memory(self, agent: str) -> "MemoryHandle":
        """An agent's memory: `await rt.memory("ops").list()`, and `show`, `edit`, `forget`, `working`."""
        from wakeful.surfaces.library.memory_handle import MemoryHandle

        return MemoryHandle(self._here.engine, agent)

    async def closure(self, agent: str, *, thread: str = "main") -> "ClosureDecision":
        """Where an agent stands: completed, able to go on, waiting for what, or failed, with the facts that say so."""
        from wakeful.service.commands.agents import closure_of_agent

        return await closure_of_agent(self._here.engine, agent, thread)

    async def why(self, agent: str) -> "AgentLife":
        """Why an agent does what it does: running, queued, waiting, idle, paused or stopped, with the facts for it.

        One that a full disk or a missing folder holds up says so; it is tried again by itself. Raises AgentNotFound.
        """
        return await self._here.why(agent)

    async def settled(self) -> None:
        """Wait until nothing runs and nothing is due now."""
        await self._here.settled()

    async def follow(self, agent: str, *, after: int = 0) -> "AsyncIterator[RuntimeEvent]":
        """An agent's events: those that are stored, then those to come, each once and in order."""
        from wakeful.bootstrap.keys import own_keys
        from wakeful.service.queries.runtime_agents import follow_agent

        async for event in follow_agent(self._here.engine.store, agent, after=after, keys=own_keys()):
            yield event

    @property
    def _here(self) -> "LivingRuntime":
        if self._living is None:
            raise InvalidRequest("this runtime is not open", "Use it inside `async with Runtime(...) as rt:`.")
        return self._living


def _message_id(message: "SentMessage | DeliveryReceipt | str") -> str:
    found = message if isinstance(message, str) else getattr(message, "message_id", None)
    if not isinstance(found, str):
        raise InvalidValue(
            "invalid_message",
            "message",
            f"{reprlib.repr(message)} is none",
            "Give what `send` returned, or `deliver` of a delivery that brought a message.",
        )
    return found
