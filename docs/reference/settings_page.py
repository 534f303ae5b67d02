"""The page of settings: the owner's file, environment variables, and where the others stand.

Names come from the code that reads them; the words beside them are here. A name without words is an error.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from wakeful.contracts import budgets
from wakeful.contracts.retention import Retention
from wakeful.contracts.telemetry import DaemonLog, Telemetry
from wakeful.providers import azure
from wakeful.providers.endpoint_settings import KNOWN as PROVIDER
from wakeful.providers.endpoints import BUILT_IN
from wakeful.retrieval.named_collections import FIELDS as COLLECTION
from wakeful.service.owner_hooks import KNOWN as HOOK
from wakeful.settings.connect_profiles import KNOWN as CONNECT
from wakeful.settings.daemon import KNOWN as DAEMON
from wakeful.settings.heartbeat import KNOWN as HEARTBEAT
from wakeful.settings.limit_overrides import OVERRIDABLE, PREFIX, PROBE, PROBE_SECONDS
from wakeful.settings.model_rules import KNOWN as MODELS
from wakeful.settings.notify_targets import KNOWN as NOTIFY
from wakeful.settings.owner_file import SECTIONS
from wakeful.settings.retry import KNOWN as RETRY
from wakeful.settings.spend_windows import LINES, TIMEZONE
from wakeful.tools.hooks import DEFAULT_SECONDS
from wakeful.tools.local.output_budget import DEFAULT_SETTING, MAX_SETTING, OutputBudget

INTRO = """\
# Settings

Settings of an installation stand in the owner's file and in environment variables. Settings of one agent stand in its
code or in [its file](agents.md). This page is generated.

`wakeful models list` prints the path of the file. A name that wakeful does not know is an error.
"""
FILE = """
## The owner's file

`wakeful.toml` in the home of wakeful, or the file that `WAKEFUL_CONFIG` names. A `wakeful.toml` in the current folder
is never read: a repository that you check out must not decide where your keys are sent.

```toml
store = "runs.db"

[models]
allow = ["anthropic:*", "ollama:*"]
deny = ["*:*-preview"]

[budget]
per_day = {usd = 5}
timezone = "Europe/Berlin"

[principals."customer-17"]
per_day = {usd = 0.50}

[providers.vllm]
base_url = "http://127.0.0.1:8000/v1"

[[hooks]]
point = "pre_tool_use"
match = "exec_command"
command = ["python3", "check.py"]

[collections.handbook]
folder = "handbook"

[runtime]
default_tool_output_tokens = 4000

[retry]
patience = 7200

[daemon]
drain = 300

[retention]
turns = 30

[notify.phone]
to_env = "PHONE_URL"
quiet = "22:00-07:00"

[connect.office]
address = "https://agents.example:8420"
token_file = "office.token"

[telemetry]
endpoint = "http://127.0.0.1:4318"
metrics_route = true

[log]
format = "json"

[heartbeat]
url_env = "HEARTBEAT_URL"
```

A daemon at work follows a changed file after `wakeful reload`; `store`, `[telemetry]` and `[log]`
count from its next start on, and the reload says so.

`wakeful check` says what is wrong with the file, and where. An editor does the same with its schema: see
[Files](../guides/files.md).

"""
VARIABLES = """
## Environment variables

A variable that is empty counts as not set.

"""
OTHER = """
## Settings of an agent, a run and a tool

| settings | where |
|---|---|
| fields of an agent's YAML or JSON file, budget profiles | [agents.md](agents.md) |
| keywords of `Agent`, `run`, `@tool`, `Budget`, `ModelSettings`, `Sandbox` | [api.md](api.md) |
| settings of a model, quirks and profiles of a provider | [providers.md](providers.md) |
| options of a command | [cli.md](cli.md) |
| `mcp.json`, the file of MCP servers | [MCP servers](../guides/mcp.md) |
"""


KEPT = Retention()


class Row(NamedTuple):
    """One setting."""

    kind: str
    default: str
    meaning: str
    example: str


_WINDOW = "a table with `usd`"
WORDS: Mapping[str, Mapping[str, Row]] = {
    "": {
        "store": Row(
            "path",
            "`wakeful.db` in the home",
            "The store of commands that get no `--store`. Relative to the file.",
            'store = "runs.db"',
        ),
        "models": Row("table", "none", "Which models agents may ask: `[models]` below.", "[models]"),
        "budget": Row("table", "none", "Spending limits for everything that runs here: `[budget]` below.", "[budget]"),
        "principals": Row(
            "tables",
            "none",
            "Spending limits for each principal: `[principals.ID]` below.",
            '[principals."customer-17"]',
        ),
        "providers": Row(
            "tables",
            "none",
            "Addresses, keys, quirks and prices of providers: `[providers.NAME]` below.",
            "[providers.vllm]",
        ),
        "hooks": Row(
            "list of tables", "none", "Commands that are asked about tool calls: `[[hooks]]` below.", "[[hooks]]"
        ),
        "collections": Row(
            "tables",
            "none",
            "Folders of text that agents may search: `[collections.NAME]` below.",
            "[collections.handbook]",
        ),
        "runtime": Row(
            "table", "none", "Limits for the output of commands and file tools: `[runtime]` below.", "[runtime]"
        ),
        "heartbeat": Row(
            "table", "none", "An address that hears that the runtime is well: `[heartbeat]` below.", "[heartbeat]"
        ),
        "retry": Row("table", "none", "How long turns wait for a provider that is away: `[retry]` below.", "[retry]"),
        "daemon": Row("table", "none", "How the daemon ends: `[daemon]` below.", "[daemon]"),
        "retention": Row("table", "none", "How long a runtime keeps things: `[retention]` below.", "[retention]"),
        "notify": Row(
            "tables", "none", "Where notices of agents go, by name: `[notify.NAME]` below.", "[notify.phone]"
        ),
        "connect": Row(
            "tables", "none", "Daemons elsewhere that commands may ask: `[connect.NAME]` below.", "[connect.office]"
        ),
        "telemetry": Row("table", "none", "Where traces and metrics go: `[telemetry]` below.", "[telemetry]"),
        "log": Row("table", "none", "How the daemon writes its own log: `[log]` below.", "[log]"),
    },
    "[models]": {
        "allow": Row(
            "list of patterns",
            "any model",
            "Only models that match may be asked. `*` matches any text.",
            'allow = ["anthropic:*"]',
        ),
        "deny": Row(
            "list of patterns",
            "none",
            "Models that match are never asked, also when `allow` names them.",
            'deny = ["*:*-preview"]',
        ),
        "offline": Row("true or false", "`false`", "Only models on this machine may be asked.", "offline = true"),
    },
    "[budget]": {
        **{
            line: Row(
                _WINDOW,
                "no limit",
                f"The most that all runs together may spend in one {period}.",
                f"{line} = {{usd = 5}}",
            )
            for line, period in LINES.items()
        },
        TIMEZONE: Row(
            "name of a time zone", "`UTC`", "The time zone of days and months.", 'timezone = "Europe/Berlin"'
        ),
    },
    "[principals.ID]": {
        line: Row(
            _WINDOW,
            "no limit",
            f"The most that all runs of this principal may spend in one {period}.",
            f"{line} = {{usd = 0.50}}",
        )
        for line, period in LINES.items()
    },
    "[providers.NAME]": {},
    "[[hooks]]": {
        "point": Row(
            "hook point",
            "`pre_tool_use`",
            "When the command is asked: see [Hooks](../explain/hooks.md).",
            'point = "post_tool_use"',
        ),
        "match": Row("pattern", "`*`", "Names of tools that it is asked about.", 'match = "exec_command"'),
        "command": Row(
            "list of words, or a text",
            "required",
            "The command. It gets JSON on stdin and answers with a verdict on stdout.",
            'command = ["python3", "check.py"]',
        ),
        "timeout": Row(
            "seconds", f"`{DEFAULT_SECONDS:g}`", "How long it may take. After that it counts as failed.", "timeout = 5"
        ),
        "on_error": Row(
            "`closed` or `open`",
            "`closed`",
            "A hook that fails refuses the call (`closed`) or changes nothing (`open`).",
            'on_error = "open"',
        ),
        "name": Row("text", "the first word of the command", "Its name in the log.", 'name = "check"'),
    },
    "[collections.NAME]": {
        "folder": Row("path", "required", "The folder with the texts. Relative to the file.", 'folder = "handbook"'),
        "patterns": Row(
            "list of patterns", "Markdown and text files", "Which files are indexed.", 'patterns = ["*.md"]'
        ),
        "untrusted": Row(
            "true or false",
            "`false`",
            "The texts may come from strangers: they count as untrusted input.",
            "untrusted = true",
        ),
    },
    "[runtime]": {
        DEFAULT_SETTING: Row(
            "number of tokens",
            f"`{OutputBudget().default_tokens:,}`",
            "The length of a result when the model does not ask for another.",
            f"{DEFAULT_SETTING} = 4000",
        ),
        MAX_SETTING: Row(
            "number of tokens",
            f"`{OutputBudget().max_tokens:,}`",
            "The most that a model may ask for.",
            f"{MAX_SETTING} = 20000",
        ),
    },
    "[retention]": {
        "turns": Row(
            "days; 0: for ever", f"`{KEPT.turns:g}`", "Details of turns that ended; conversations stay.", "turns = 90"
        ),
        "temporary_agents": Row(
            "days; 0: for ever",
            f"`{KEPT.temporary_agents:g}`",
            "The whole log of runs that have neither a thread nor a key.",
            "temporary_agents = 2",
        ),
        "task_output": Row(
            "days; 0: for ever",
            f"`{KEPT.task_output:g}`",
            "Files with the output of background tasks that ended.",
            "task_output = 30",
        ),
        "spilled_output": Row(
            "days; 0: for ever",
            f"`{KEPT.spilled_output:g}`",
            "Results that were too long for the model, in full; the preview stays.",
            "spilled_output = 14",
        ),
        "blobs": Row(
            "days; 0: for ever", f"`{KEPT.blobs:g}`", "Stored contents to which nothing refers any more.", "blobs = 2"
        ),
        "request_keys": Row(
            "days; 0: for ever",
            f"`{KEPT.request_keys:g}`",
            "Idempotency keys of requests over HTTP, with their answers.",
            "request_keys = 30",
        ),
        "feed": Row(
            "days; 0: for ever",
            f"`{KEPT.feed:g}`",
            "The feed over all agents; the events that it names stay in their logs.",
            "feed = 7",
        ),
        "notice_gb": Row(
            "gigabytes; 0: never",
            f"`{KEPT.notice_gb:g}`",
            "A store beyond this size is told as a notice, once.",
            "notice_gb = 20",
        ),
    },
    "[notify.NAME]": {
        "to": Row(
            "URL, `channel:NAME`, or the words of a command",
            "required, or `to_env`",
            "Where notices of agents with `notify: {to: NAME}` go; `[notify.default]`: of agents without `notify`.",
            'to = ["notify-send", "wakeful"]',
        ),
        "to_env": Row("name of a variable", "none", "The variable that holds the URL.", 'to_env = "PHONE_URL"'),
        "on": Row(
            "list of kinds",
            "`action_required`, `failure`, `budget`, `missed`",
            "Which notices are sent here; also `progress` and `change`.",
            'on = ["failure", "change"]',
        ),
        "digest": Row(
            "time of day",
            "none",
            "One message a day, at this time, with every notice but `action_required`.",
            'digest = "08:00"',
        ),
        "quiet": Row(
            "hours", "none", "Only `action_required` is sent then, the rest afterwards.", 'quiet = "22:00-07:00"'
        ),
        "timezone": Row(
            "name of a time zone", "`UTC`", "The time zone of `quiet` and `digest`.", 'timezone = "Europe/Berlin"'
        ),
        "allow_private": Row(
            "true or false", "`false`", "The URL may lead to an address of this network.", "allow_private = true"
        ),
    },
    "[connect.NAME]": {
        "address": Row(
            "URL, or path of a socket",
            "required",
            "The daemon that `--connect NAME` asks.",
            'address = "https://agents.example:8420"',
        ),
        "token_file": Row(
            "path, relative to this file",
            "`$WAKEFUL_TOKEN`",
            "The file that holds the token for a URL; its owner alone may read it.",
            'token_file = "office.token"',
        ),
    },
    "[retry]": {
        "patience": Row(
            "seconds, 0 to 604800",
            "`72000` (20 hours)",
            "How long turns wait for a provider that is away, before they fail. An agent's own `retry` wins.",
            "patience = 7200",
        ),
    },
    "[daemon]": {
        "drain": Row(
            "seconds, 0 to 86400",
            "`120`",
            "How long model and tool calls under way may take to end when the daemon is stopped. `0`: they are cut "
            "off. `wakeful daemon stop --drain` wins.",
            "drain = 300",
        ),
    },
    "[heartbeat]": {
        "url": Row(
            "URL",
            "required, or `url_env`",
            "It is asked for while the runtime is well, and `/fail` behind it when it is not.",
            'url = "https://hc.example.org/ping/0a1b"',
        ),
        "url_env": Row("name of a variable", "none", "The variable that holds the URL.", 'url_env = "HEARTBEAT_URL"'),
        "seconds": Row("seconds, 1 or more", "`60`", "The time between two pings.", "seconds = 300"),
        "allow_private": Row(
            "true or false", "`false`", "The URL may lead to an address of this network.", "allow_private = true"
        ),
    },
    "[telemetry]": {
        "endpoint": Row(
            "URL",
            "none",
            "Where OTLP is taken over HTTP; `/v1/traces` and `/v1/metrics` are added.",
            'endpoint = "http://127.0.0.1:4318"',
        ),
        "headers_env": Row(
            "name of a variable",
            "none",
            "The variable that holds headers for the endpoint: `name=value,name=value`.",
            'headers_env = "OTLP_HEADERS"',
        ),
        "traces": Row("true or false", "`true`", "Spans of turns are sent to the endpoint.", "traces = false"),
        "metrics": Row("true or false", "`true`", "Metrics are sent to the endpoint.", "metrics = false"),
        "metrics_route": Row(
            "true or false", "`false`", "`/metrics` of the daemon answers, for Prometheus.", "metrics_route = true"
        ),
        "content": Row(
            "true or false",
            "`false`",
            "Spans hold messages, arguments and results, redacted and cut.",
            "content = true",
        ),
        "service_name": Row("text", "`wakeful`", "`service.name` of everything that is sent.", 'service_name = "shop"'),
        "timeout_seconds": Row(
            "seconds", "`10`", "How long one request to the endpoint may take.", "timeout_seconds = 3"
        ),
    },
    "[log]": {
        "format": Row("`text` or `json`", "`text`", "`json`: one object a line.", 'format = "json"'),
        "level": Row(
            "`debug`, `info`, `warning` or `error`", "`info`", "Less important lines are left out.", 'level = "warning"'
        ),
    },
}
NAMES: Mapping[str, Iterable[str]] = {
    "": SECTIONS,
    "[models]": MODELS,
    "[budget]": (*LINES, TIMEZONE),
    "[principals.ID]": LINES,
    "[providers.NAME]": PROVIDER,
    "[[hooks]]": HOOK,
    "[collections.NAME]": COLLECTION,
    "[runtime]": (DEFAULT_SETTING, MAX_SETTING),
    "[retention]": Retention.model_fields,
    "[notify.NAME]": NOTIFY,
    "[connect.NAME]": CONNECT,
    "[telemetry]": Telemetry.model_fields,
    "[log]": DaemonLog.model_fields,
    "[heartbeat]": HEARTBEAT,
    "[retry]": RETRY,
    "[daemon]": DAEMON,
}
"""The names that the code reads, by table."""
_VARIABLES = {
    f"{PREFIX}{PROBE}": Row(
        "whole number, 1 or more",
        f"`{PROBE_SECONDS}`",
        "Seconds until a provider that refused a key or has no quota is asked again; then twice as long each time.",
        f"{PREFIX}{PROBE}=600",
    ),
    "WAKEFUL_HOME": Row(
        "path",
        "`~/.local/share/wakeful`; on macOS `~/Library/Application Support/wakeful`",
        "The home of wakeful: the database, `wakeful.toml`, `mcp.json`, trusted files.",
        "WAKEFUL_HOME=~/agents",
    ),
    "WAKEFUL_CONFIG": Row(
        "path", "`wakeful.toml` in the home", "The owner's file.", "WAKEFUL_CONFIG=~/agents/wakeful.toml"
    ),
    "WAKEFUL_CONNECT": Row(
        "URL, path of a socket, or name",
        "none",
        "The daemon that commands ask which get no `--connect` and no `--store`.",
        "WAKEFUL_CONNECT=office",
    ),
    "WAKEFUL_TOKEN": Row(
        "token", "none", "Opens a daemon at a URL, where `[connect.NAME]` has no `token_file`.", "WAKEFUL_TOKEN=wk_..."
    ),
    "WAKEFUL_STORE": Row(
        "path", "`store` in the owner's file", "The store of commands that get no `--store`.", "WAKEFUL_STORE=runs.db"
    ),
    "WAKEFUL_OFFLINE": Row(
        "`1`",
        "not set",
        "Only models on this machine may be asked, as with `offline` in `[models]`.",
        "WAKEFUL_OFFLINE=1",
    ),
    "WAKEFUL_AGENT_ID": Row(
        "name",
        "`main`",
        "The name of the default agent, which also sees the skills of your home.",
        "WAKEFUL_AGENT_ID=support",
    ),
    f"{PREFIX}{DEFAULT_SETTING.upper()}": Row(
        "number of tokens",
        "`[runtime]`",
        f"As `{DEFAULT_SETTING}` in `[runtime]`; the variable wins.",
        f"{PREFIX}{DEFAULT_SETTING.upper()}=4000",
    ),
    f"{PREFIX}{MAX_SETTING.upper()}": Row(
        "number of tokens",
        "`[runtime]`",
        f"As `{MAX_SETTING}` in `[runtime]`; the variable wins.",
        f"{PREFIX}{MAX_SETTING.upper()}=20000",
    ),
    "NO_COLOR": Row("any text", "not set", "No colours on the terminal.", "NO_COLOR=1"),
    "COLUMNS": Row("number", "the terminal's width, or 80", "How wide tables and texts are.", "COLUMNS=120"),
    "XDG_DATA_HOME": Row(
        "path", "`~/.local/share`", "Where the home of wakeful is, without `WAKEFUL_HOME`.", "XDG_DATA_HOME=~/data"
    ),
}


def settings_page(provider_words: Mapping[str, str]) -> str:
    """The whole page. `provider_words` are the meanings of the settings of a provider, by name."""
    parts = [INTRO, FILE, _table(NAMES[""], WORDS[""])]
    for title, names in NAMES.items():
        if title == "[providers.NAME]":
            parts += [f"\n### `{title}`\n\n", _provider_table(provider_words)]
        elif title:
            parts += [f"\n### `{title}`\n\n", _table(names, WORDS[title])]
    limits = {f"{PREFIX}{name}": _limit(name) for name in OVERRIDABLE}
    parts += [VARIABLES, _table(_VARIABLES, _VARIABLES), "\n### Limits\n\n", _table(limits, limits)]
    parts += ["\n### Keys and addresses of providers\n\n", _keys(), OTHER]
    return "".join(parts)


def _table(names: Iterable[str], words: Mapping[str, Row]) -> str:
    lines = ["| setting | type | default | meaning | example |", "|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {words[name].kind} | {words[name].default} | {words[name].meaning} | `{words[name].example}` |"
        for name in names
    ]
    return "\n".join(lines) + "\n"


def _provider_table(words: Mapping[str, str]) -> str:
    rows = "".join(f"| `{name}` | {words[name]} |\n" for name in PROVIDER)
    return (
        f"| setting | meaning |\n|---|---|\n{rows}\n[providers.md](providers.md) has the values and examples of each.\n"
    )


def _limit(name: str) -> Row:
    field, least = OVERRIDABLE[name]
    default = getattr(budgets, name)
    return Row(
        f"whole number, {least} or more",
        f"`{default:,}`",
        f"Replaces `{field}` of the budget profile, unless the budget names it.",
        f"{PREFIX}{name}={default}",
    )


def _keys() -> str:
    lines = ["| provider | key | address |", "|---|---|---|"]
    for there in BUILT_IN.values():
        key = " or ".join(f"`{name}`" for name in there.key_env) or "-"
        lines.append(f"| `{there.name}` | {key} | `{there.name.upper().replace('-', '_')}_BASE_URL` |")
    return "\n".join(lines) + f"\n\n`azure` also reads `{azure.RESOURCE}` and `{azure.VERSION}`.\n"
