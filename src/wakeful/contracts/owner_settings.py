"""The owner's file, `wakeful.toml`, as its published schema has it: every table and every setting.

It is for editors and for `wakeful schema owner`. What a value may be is decided by the reader of each table.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from wakeful.contracts.agent_file import WindowSection
from wakeful.contracts.described_values import DescribedValue
from wakeful.contracts.notices import QUIET, TIME, NoticeKind
from wakeful.contracts.retention import Retention
from wakeful.contracts.retries import LONGEST_PATIENCE
from wakeful.contracts.telemetry import DaemonLog, Telemetry
from wakeful.contracts.tools import HookPoint

DRAIN_SECONDS = 120.0
"""Twice what a provider has for the first byte of an answer: what answers at all is nearly always through by then. The
longest request that is allowed takes 900 seconds, and one that hangs would hold up every restart for that long."""
LONGEST_DRAIN = 24 * 3600.0
Variable: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]


class ModelsTable(DescribedValue):
    """Which models agents may ask."""

    allow: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Patterns of `provider:model`; only these may be asked. Left out: any."""
    deny: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Patterns of models that are never asked."""
    offline: bool = False
    """Only models on this machine may be asked."""


class WindowsTable(DescribedValue):
    """Spending limits over time."""

    per_hour: WindowSection | None = None
    per_day: WindowSection | None = None
    per_month: WindowSection | None = None


class BudgetTable(WindowsTable):
    """Spending limits for everything that runs here."""

    timezone: str = "UTC"
    """The time zone of days and months, by its name in the tz database."""


class ProviderTable(DescribedValue):
    """How a provider is reached: docs/reference/providers.md explains each setting."""

    transport: str | None = None
    base_url: str | None = None
    key_env: Variable | tuple[Variable, ...] | None = None
    """The variable that holds the key, or a list of them. A key itself is refused."""
    auth: Literal["bearer", "x-api-key", "api-key", "x-goog-api-key", "none"] | None = None
    key_required: bool | None = None
    api_version: str | None = None
    dialect: Literal["openai", "compatible"] | None = None
    headers: dict[str, str] = {}
    quirks: dict[str, Any] = {}
    profile: dict[str, Any] = {}
    prices: dict[str, Any] = {}


class HookTable(DescribedValue):
    """A command that is asked about calls of tools."""

    point: HookPoint = "pre_tool_use"
    """When it is asked."""
    match: str = "*"
    """Names of tools that it is asked about."""
    command: str | tuple[Annotated[str, Field(min_length=1)], ...]
    """It gets JSON on its standard input and answers with a verdict."""
    timeout: float = Field(10, gt=0)
    """Seconds."""
    on_error: Literal["closed", "open"] = "closed"
    """A hook that fails refuses the call, or changes nothing."""
    name: str | None = Field(None, min_length=1)


class CollectionTable(DescribedValue):
    """A folder of texts that agents may search."""

    folder: str
    """Relative to the file."""
    patterns: tuple[str, ...] | None = None
    untrusted: bool = False
    """The texts may come from strangers."""


class RuntimeTable(DescribedValue):
    """Limits for the output of commands and file tools."""

    default_tool_output_tokens: int | None = Field(None, ge=1)
    max_tool_output_tokens: int | None = Field(None, ge=1)


class RetryTable(DescribedValue):
    """How long turns of a runtime wait for a provider that is away."""

    patience: float | None = Field(None, ge=0, le=LONGEST_PATIENCE)
    """Seconds; left out: 20 hours. An agent's own `retry` wins."""


class DaemonTable(DescribedValue):
    """How the daemon ends."""

    drain: float = Field(DRAIN_SECONDS, ge=0, le=LONGEST_DRAIN)
    """Seconds that calls of models and tools under way have to end in. `--drain` of a command wins."""


class NotifyTable(DescribedValue):
    """Where notices go that are sent to this name. It has `to` or `to_env`."""

    to: str | tuple[str, ...] | None = None
    """A URL, or the words of a command."""
    to_env: Variable | None = None
    """The variable that holds the URL."""
    quiet: str | None = Field(None, pattern=QUIET)
    """Hours in which only `action_required` is sent."""
    digest: str | None = Field(None, pattern=TIME)
    """One message a day, at this time, for everything but `action_required`."""
    on: tuple[NoticeKind, ...] | None = None
    """Which kinds are sent here."""
    timezone: str = "UTC"
    allow_private: bool = False
    """The URL may lead to an address of this network."""


class HeartbeatTable(DescribedValue):
    """An address that is pinged while the runtime is well. It has `url` or `url_env`."""

    url: str | None = None
    """When it is not well, `/fail` behind it is."""
    url_env: Variable | None = None
    """The variable that holds the URL."""
    seconds: float = Field(60, ge=1)
    """Between two pings."""
    allow_private: bool = False
    """The URL may lead to an address of this network."""


class ConnectTable(DescribedValue):
    """A daemon elsewhere, for `--connect` with this name."""

    address: str
    """A URL, or the path of a socket."""
    token_file: str | None = None
    """The file that holds the token for a URL."""


class OwnerSettings(DescribedValue):
    """The owner's file, `wakeful.toml`."""

    store: str | None = Field(None, min_length=1)
    """The store of commands that get no `--store`; relative to the file."""
    models: ModelsTable = ModelsTable()
    budget: BudgetTable = BudgetTable()
    principals: dict[str, WindowsTable] = {}
    """Spending limits for each principal."""
    providers: dict[str, ProviderTable] = {}
    hooks: tuple[HookTable, ...] = ()
    collections: dict[str, CollectionTable] = {}
    runtime: RuntimeTable = RuntimeTable()
    retry: RetryTable = RetryTable()
    daemon: DaemonTable = DaemonTable()
    retention: Retention = Retention()
    """How long things are kept, in days; 0: for ever."""
    notify: dict[str, NotifyTable] = {}
    """By name; `default` holds for agents that say nothing."""
    telemetry: Telemetry = Telemetry()
    """Where traces and metrics of turns go."""
    log: DaemonLog = DaemonLog()
    """How the daemon writes its own log."""
    heartbeat: HeartbeatTable = HeartbeatTable()
    connect: dict[str, ConnectTable] = {}
