"""Agents at work on a store, until it is closed."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.homes import owner_problems
from wakeful.bootstrap.keys import key_variables, own_keys
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.errors import InvalidConfig
from wakeful.engine.run_request import Engine
from wakeful.ports import Clock, Ids, Store
from wakeful.settings.agent_homes import home_of_store
from wakeful.system import SystemClock, UniqueIds

if TYPE_CHECKING:
    from wakeful.contracts.notices import NotifyTarget
    from wakeful.contracts.retention import Retention
    from wakeful.engine.agent import Agent
    from wakeful.ports.channels import Channel, ChannelRow
    from wakeful.runtime.scheduler import Places
    from wakeful.service.living_runtime import LivingRuntime
    from wakeful.service.telemetry import TelemetryReader
    from wakeful.tools.tool import Tool


@asynccontextmanager
async def open_runtime(
    store: "Store | str | PathLike[str]",
    agents: "Sequence[Agent[Any, Any]]",
    *,
    tools: "Sequence[Tool[Any]]" = (),
    folder: Path | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    places: "Places",
    grace: float | None,
    retention: "Retention | None" = None,
    notify: "NotifyTarget | None" = None,
    public_url: str = "",
) -> "AsyncIterator[LivingRuntime]":
    """Agents at work on a store, until it is closed. Raises StoreLocked while another runtime has the store."""
    from wakeful.runtime.agent_roster import AgentRoster, RosterEntry
    from wakeful.runtime.home_lock import runtime_lock
    from wakeful.runtime.task_folders import tasks_folder
    from wakeful.runtime.tasks import RuntimeTasks
    from wakeful.service.agent_supply import AgentSupply
    from wakeful.service.commands.agent_homes import seed_home
    from wakeful.service.commands.trigger_control import trigger_tools
    from wakeful.service.living_runtime import living_runtime
    from wakeful.service.owner_hooks import command_environment
    from wakeful.service.owner_terms import OwnerTerms
    from wakeful.service.queries.agent_details import RuntimeAgentBoard
    from wakeful.settings.retention import owner_retention
    from wakeful.tools.notice_sender import NoticeSender

    kept = owner_retention() if retention is None else retention
    roster = AgentRoster()
    for agent in agents:
        roster.add(RosterEntry(agent))
    clock, ids = clock if clock is not None else SystemClock(), ids if ids is not None else UniqueIds()
    async with opened_store(store) as opened:
        with runtime_lock(opened.location), tasks_folder(opened.location) as place:
            engine = new_engine(opened, clock=clock, ids=ids)
            tasks = RuntimeTasks(engine, place, roster.names)
            board, given = RuntimeAgentBoard(), trigger_tools(engine, public_url)
            around = replace(engine.surroundings, wakes=True, lives=True, tasks=tasks, tools=given, agents=board)
            board.engine = engine = replace(engine, surroundings=around)
            await seed_home(engine)
            sender = NoticeSender(lambda: command_environment(engine.surroundings.keys()))
            owner = OwnerTerms(owner_problems, key_variables)
            supply = AgentSupply(engine, roster, tuple(tools), folder, owner)
            runtime = living_runtime(
                engine,
                supply,
                places,
                tasks,
                owner_retention if retention is None else lambda: kept,
                sender.send,
                partial(_channel, opened),
                sender.ping,
                notify,
                public_url,
            )
            runtime.grace = grace
            owner.hold()
            try:
                runtime.telemetry = _telemetry(engine)
                await runtime.start()
                try:
                    yield runtime
                finally:
                    await runtime.close()
            finally:
                owner.release()


def _telemetry(engine: Engine) -> "TelemetryReader | None":
    """What the owner's file wants told of the turns of a store. Raises InvalidConfig when it cannot be done."""
    from wakeful.settings.telemetry import endpoint_headers, owner_telemetry, place_of

    wanted = owner_telemetry()
    if not wanted.is_on:
        return None
    from wakeful.telemetry.packages import load_packages

    load_packages(wanted)
    from wakeful.service.telemetry import TelemetryReader, cursor_name
    from wakeful.telemetry.meters import open_meters
    from wakeful.telemetry.span_sender import otlp_sender, telemetry_resource

    store, headers = engine.store, endpoint_headers(wanted)
    resource = telemetry_resource(wanted, store.runtime_id)
    is_file = store.location != ":memory:"
    return TelemetryReader(
        store,
        engine.clock,
        otlp_sender(wanted, headers, resource) if wanted.endpoint and wanted.traces else None,
        open_meters(wanted, headers, resource) if wanted.metrics_route or wanted.metrics else None,
        home_of_store(store.location) / "run" / cursor_name(store.runtime_id) if is_file else None,
        wanted.content,
        place_of(wanted.endpoint),
        own_keys,
    )


def _channel(store: Store, row: "ChannelRow") -> "Channel":
    """The service that a channel is reached by. Raises InvalidConfig for a token that is not there."""
    from wakeful.decisions.channels import topic_of
    from wakeful.decisions.salted_secrets import salted
    from wakeful.tools.channels.ntfy import NtfyChannel
    from wakeful.tools.channels.service_calls import ServiceCalls
    from wakeful.tools.channels.telegram import TelegramChannel

    token = os.environ.get(row.key_variable, "") if row.key_variable is not None else ""
    if row.key_variable is not None and not token:
        raise InvalidConfig(
            f"the channel {row.name} needs its token, and the variable {row.key_variable} is not set",
            f"Write {row.key_variable}=... in secrets.env of the home, and restart: wakeful daemon restart",
        )
    if row.kind == "telegram":
        return TelegramChannel(ServiceCalls(row.server, row.allow_private, hides=(token,)), token)
    secret = salted(store.secret, row.salt)
    topics = [topic_of(secret, row.name, row.generation, which) for which in ("out", "in")]
    headers = {"authorization": f"Bearer {token}"} if token else {}
    calls = ServiceCalls(row.server, row.allow_private, headers, hides=(*topics, token))
    return NtfyChannel(calls, topics[0], topics[1], since=row.added_at // 1_000_000)
