"""Writes the generated pages of this folder: `python docs/reference/generate.py`. A test holds them to the code."""

import dataclasses
import inspect
import json
import runpy
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from wakeful.contracts import budgets
from wakeful.contracts.agent_file import BudgetSection, CompactionSection, RunBudgetSection, WindowSection
from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.bindings import Binding
from wakeful.contracts.budgets import PROFILES, Limits
from wakeful.contracts.events import EVENTS, Event
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.outcomes import RunFailure, RunOutcome
from wakeful.contracts.policies import (
    ActionPolicy,
    GatePolicy,
    PolicyFragment,
    ProvenancePolicy,
    Rule,
    ToolPolicy,
)
from wakeful.contracts.principals import CapabilityCeiling, ExecutionPrincipal
from wakeful.contracts.runtime_tools import RuntimeToolRequest, RuntimeToolResult
from wakeful.contracts.schema import event_schema
from wakeful.contracts.transcript import Message
from wakeful.contracts.values import Value
from wakeful.hosts.actions.pending_action import PendingAction
from wakeful.hosts.loop import conversation_result as results
from wakeful.hosts.loop.conversation_request import ConversationRequest, RequestWorkspace, RuntimeOverrides
from wakeful.hosts.ports import ToolCall, ToolCallMetadata
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration
from wakeful.providers.endpoint_settings import KNOWN
from wakeful.providers.endpoints import BUILT_IN, TRANSPORTS, Endpoint
from wakeful.providers.openai_chat.dialect import Dialect
from wakeful.providers.openai_responses.client import QUIRKS
from wakeful.providers.price_list import list_date, list_name
from wakeful.providers.prices import SELLERS
from wakeful.providers.profiles import CHECKED, UNKNOWN, ModelProfile
from wakeful.providers.wire.http import Timeouts
from wakeful.service.queries.schemas import agent_file, agent_schema, owner_schema, words_under_fields
from wakeful.settings.limit_overrides import OVERRIDABLE, PREFIX
from wakeful.settings.owner_file import SETTINGS_FILE
from wakeful.surfaces.cli.command_table import GROUPS
from wakeful.surfaces.cli.main import app_of
from wakeful.views.conversation_export import ResultEvent, ToolExecution

HERE = Path(__file__).parent
MAX_DEFAULT = 80
"""A longer default says more about its own type than about the field."""
EVENTS_INTRO = """\
# Events

Every event that can stand in an agent's log, by type. The payload's fields are listed here; the envelope around it
(ids, sequence, time) and every nested shape are in [events.schema.json](events.schema.json).
A field in **bold** is required.
"Also called" are other names for the same fact; filters accept them. "Needs" are the ids that its envelope must carry.
This page is generated.
"""
CONVERSATION: tuple[type[Value], ...] = (
    Message,
    ConversationRequest,
    RuntimeToolDeclaration,
    Binding,
    ExecutionPrincipal,
    CapabilityCeiling,
    RuntimeOverrides,
    RequestWorkspace,
    results.ConversationResult,
    RunOutcome,
    RunFailure,
    ResultEvent,
    ToolExecution,
    results.ToolEvent,
    ToolAudit,
    results.ToolObservability,
    results.ObservedCall,
    results.ArgumentsSeen,
    results.ResultShape,
    results.StructuredOutputDiagnostics,
    RuntimeToolRequest,
    RuntimeToolResult,
    PendingAction,
    ToolCall,
    ToolCallMetadata,
    PolicyFragment,
    GatePolicy,
    ToolPolicy,
    Rule,
    ProvenancePolicy,
)
CONVERSATION_INTRO = """\
# Conversation values

What goes into `ConversationLoop.run`, what comes out of it, what an executor gets, and what policies are made of, field
by field.
A field in **bold** is required. A value with a `schema` carries it with its integer `version`; another schema or
another version is refused. Every value is immutable, and what JSON cannot hold is refused where it stands.
This page is generated.
"""
AGENTS_INTRO = """\
# Agents

An agent's file, YAML or JSON, field by field: what `Agent.to_file` writes, `Agent.from_file` and `wakeful run --agent`
read, and `Agent(...)` takes under the same names. A field in **bold** is required. An unknown field is refused by name.
[agent.schema.json](agent.schema.json) is its JSON Schema; `wakeful schema agent` prints it. This page is generated.
"""
CLI_INTRO = """\
# Commands

Every command of `wakeful` with its help. This page is generated.

- `TURN` is a turn's id, the beginning of its id, or its key (`--key`). Other ids may be shortened, too. A name that
  fits several records is refused, with the candidates.
- The store is `--store FILE`, else `$WAKEFUL_STORE`, else `store = "..."` at the top of `wakeful.toml`, else
  `wakeful.db` in `$WAKEFUL_HOME`. Nothing is read from the current folder.
- Tables are cut to the width of the screen, or to 80 columns; `--wide` cuts nothing.
- Errors are `Error: ...` and `Hint: ...` on stderr. With `--json` they are JSON on stdout:
  `{"error": {"type", "message", "hint", "exit_code"}}`.
- Exit codes: 0 completed, 1 failed, 2 wrong request, 3 a person has to act, 130 interrupted with Ctrl-C.
"""
PROFILES_INTRO = """
## Budget profiles

A limit of N allows N and refuses the N+1th before it happens. Limits that a budget does not name come from its profile;
`max_steps` of the agent beats both. Waiting for a person and downtime cost no seconds. Even without limits the shape of
a tree is bounded: how deep it goes, how many calls run at once.

"""
VARIABLES_INTRO = """
## Variables

Environment variables that replace a number of the profile, for a whole installation. The value must be a whole
number. A limit that is `unlimited` stays unlimited, and a limit that a budget names wins.

| variable | limit | interactive |
|---|---|---|
"""
AGENTS: tuple[type[Value], ...] = (agent_file(), BudgetSection, RunBudgetSection, WindowSection, CompactionSection)
PROVIDERS_INTRO = """\
# Providers

A model is named `provider:model`, as in `anthropic:claude-opus-4-7`; `provider/model` means the same.
`wakeful models list` shows the models that are described here with their prices, `wakeful models show MODEL` one of
them, and `wakeful models test MODEL` asks it for a word. A model that nobody has described can be used all the same:
it gets a safe profile, and its price is unknown. This page is generated.

## Names

Each takes its key from a variable, and another address from `NAME_BASE_URL`. A key is never read from a file, and never
written to a log, an event, an error or the environment of a child process.
"""
SETTINGS_INTRO = f"""
## The settings file

`$WAKEFUL_CONFIG`, or `{SETTINGS_FILE}` in `$WAKEFUL_HOME` (by default the place where the system keeps a user's data;
`wakeful models list` shows it). The current folder's is never read. Code wins over the environment, that over the file,
and the file over what is built in. A name that is not built in is a provider of one's own.

```toml
[providers.acme]
base_url = "https://models.acme.example/v1"
key_env = "ACME_API_KEY"

[providers.acme.profile]
context_window = 65536
images = true
```

| key in `[providers.NAME]` | meaning |
|---|---|
"""
SETTINGS = {
    "transport": f"How it is spoken to: {', '.join(f'`{name}`' for name in TRANSPORTS)}. A new name speaks "
    f"`{next(name for name, wire in TRANSPORTS.items() if wire == 'openai_chat')}` unless it says otherwise.",
    "base_url": "Its address, as its own documentation gives it. A query (`?api-version=...`) is kept behind every "
    "path.",
    "key_env": "The variable that holds the key, or a list of them: the first that is set counts.",
    "auth": "How the key is sent: `bearer`, `x-api-key`, `api-key` (Azure), `x-goog-api-key` (Gemini) or `none`.",
    "key_required": "`false`: it is asked without a key when there is none.",
    "api_version": "Anthropic's: `2023-06-01` (the default) or `2026-10-21`, which takes the key as a bearer token. "
    "For the other transports it is sent as `api-version` in the query, as Azure wants it.",
    "dialect": "For OpenAI's two formats: `openai` for OpenAI's own API behind any address (`max_completion_tokens` "
    "and the role `developer` for its reasoning models, which are sent nothing that they refuse; the settings under "
    "`openai`; encrypted reasoning), or `compatible`, the default, for what most servers take. The provider `openai` "
    "is `openai` wherever its address leads. The host's name says nothing.",
    "headers": "A table of headers for every request. Their values are shown nowhere.",
    "quirks": "A table: where it differs from its format (below).",
    "profile": "A table: what is known better about its models (below).",
    "prices": "Tables by model: what its owner says a model costs (below).",
}
AZURE = """
`azure` is OpenAI on Azure: `AZURE_OPENAI_ENDPOINT` is the address of your resource (`https://NAME.openai.azure.com`),
`AZURE_OPENAI_API_KEY` its key, and `azure:DEPLOYMENT` a model. With `OPENAI_API_VERSION` the deployment goes into the
path and the version into the query; without it, Azure's `/openai/v1` is asked. A deployment that is not called like
its model gets a safe profile: say what it can do in `[providers.azure.profile]`. A whole address works as well:

```toml
[providers.azure]
base_url = "https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=2024-10-21"
```

An error names the provider, and the server that answered where that is not the provider's own: `openai at
gateway.example answered 401`.
"""
PROFILES_CHECKED = """
Windows and limits of the models that are described were checked against the sellers' pages and `genai-prices` on {day}.
Where they differ, the smaller number that is documented stands here; where nothing confirms one, there is none.
"""
PRICES = """
## Prices

The cost of an attempt is computed from the tokens that its provider reported and a price list. It is recorded with
the list's name, version and day: `cost.recorded` after an attempt, lost ones included when they used tokens, and
`cost.estimated` (the most it can cost) before a request whose answer has a limit. `RunResult.cost_usd` is their sum. A
model without a known price has neither event, and its `cost_usd` is `None`: unknown is not zero. A script
costs nothing, so a limit in money leaves room for it. Neither does a server on this machine (`127.0.0.1`, `::1`,
`localhost`), whatever provider it answers for: its price list is called `local`. Give a price if you pay for it.
A seller's price for what another server answers in its name says so: `genai-prices 0.2.1 via gateway.example`.

Lists of the sellers ({sellers}) come with the package `genai-prices`, installed version {version}, last checked against
a seller's page on {day}. They are read from the installed package and never fetched; a newer list is a newer package.
They are list prices for the service tier that answered, with cached, cache-writing, audio and reasoning tokens at their
own prices and the higher prices of long prompts. Not in them: batches, commitments, tools that the provider runs and
bills by the call, and cache writes that are kept for longer than the provider's default.

A price of the owner's wins: in code, `price=Price(Decimal("0.10"), Decimal("0.40"))` with `Price` from
`wakeful.providers`; then in the settings file:

    [providers.vllm.prices."qwen3"]
    input = 0.10            # US dollars for a million tokens
    output = 0.40
    cached_input = 0.01     # left out: as other input; so is cache_write
    audio_input = 1.00      # left out: a request with audio has no known cost
    reasoning = 0.40        # left out: as other output
    as_of = 2026-11-01
"""
RESPONSES_QUIRKS = """
## Quirks of `openai_responses`

| field | meaning |
|---|---|
"""
RESPONSES_QUIRK = {
    "codex": "`true`: the rules of that backend; it always streams.",
    "continue": "`true`: answers are stored there, and a request that only adds to an earlier one sends what it adds.",
    "item_ids": "`true`: items go back with their ids.",
    "plain_reasoning": (
        "`true`: reasoning goes back as it came, encrypted or not. The default everywhere but at OpenAI, which does "
        "not take a summary alone."
    ),
}
SPECIAL_INTRO = """
Fields of a vendor with a meaning of their own:

| field | where | meaning |
|---|---|---|
"""
SETTINGS_OF_A_MODEL = """
## Settings of a model

`Agent(..., settings=...)` and `run(..., settings=...)`. How each format writes them:
[docs/explain/settings.md](../explain/settings.md).
"""
SPECIAL = {
    ("openai.background", "`openai_responses`"): (
        "`True`: the provider works at each request by itself and keeps its answer. Its id is in the log "
        "(`model.response.accepted`) before anything is waited for. After a crash the answer is asked for by that id "
        "(`model.response.reattached`); nothing is sent again, unless the provider does not have it any more. A turn "
        "that is stopped cancels it there. Other formats leave it out and say so."
    ),
    ("openai.freeform_tools", "`openai_responses`"): (
        "`True`: `apply_patch` is offered as a tool that takes a bare diff, with its grammar. The call, the gate and "
        "the patch engine are the same. Other formats leave the setting out and say so."
    ),
    ("anthropic.context_management", "`anthropic_messages`"): (
        "`True`, or an object with `edits` in Anthropic's words: the provider may clear old tool results on its side. "
        "Requests and log stay whole; how much could be cleared is in `request_metadata.context_editing`, as numbers."
    ),
}
LIMITS = """
A refusal for a limit is a fact beside its `model.failed`: `rate_limit.hit`, or `quota.blocked` when waiting does not
help, with every limit that the headers spoke of. An answered request adds none.
"""
CLASSES = """
## In code

```python
from wakeful import Agent
from wakeful.providers import AnthropicMessages, OpenAIChat, OpenAIResponses

Agent("a", "anthropic:claude-opus-4-7")                                   # the key from ANTHROPIC_API_KEY
Agent("b", OpenAIChat("qwen3", base_url="http://127.0.0.1:8000/v1"))      # any server that speaks Chat Completions
Agent("c", OpenAIResponses("gpt-5.5", base_url="https://proxy.example/v1", api_key=read_from_your_vault()))
Agent("d", AnthropicMessages("claude-opus-4-7", api_version="2026-10-21"))
```

A key of the environment goes to the configured address only: with a `base_url` of one's own the key is given in code,
or there is none. Every class takes `api_key`, `base_url`, `headers`, `profile`, `price`, `timeouts`, `endpoint` and
`client` (an `httpx2.AsyncClient`).
"""


def pages() -> dict[str, str]:
    """File name to content."""
    return {
        "events.schema.json": json.dumps(event_schema(), indent=2) + "\n",
        "agent.schema.json": json.dumps(agent_schema(), indent=2) + "\n",
        "owner.schema.json": json.dumps(owner_schema(), indent=2) + "\n",
        "events.md": EVENTS_INTRO + "".join(section(event) for event in EVENTS),
        "conversation.md": CONVERSATION_INTRO
        + "".join(value_section(value) for value in CONVERSATION)
        + words_section(ActionPolicy),
        "providers.md": providers_page(),
        "agents.md": agents_page(),
        "api.md": runpy.run_path(str(HERE / "public_names.py"))["api_page"](),
        "cli.md": cli_page(),
        "http.md": runpy.run_path(str(HERE / "http_page.py"))["http_page"](),
        "settings.md": runpy.run_path(str(HERE / "settings_page.py"))["settings_page"](SETTINGS),
        "../../zensical.toml": runpy.run_path(str(HERE / "site_config.py"))["site_config"](),
    }


def agents_page() -> str:
    """The fields of an agent's file, and the numbers behind its budget."""
    rows = [f"| limit | {' | '.join(PROFILES)} |", f"|---|{'---|' * len(PROFILES)}"]
    for name in Limits.model_fields:
        numbers = [getattr(limits, name) for limits in PROFILES.values()]
        if any(isinstance(number, int | float) and not isinstance(number, bool) for number in numbers):
            told = ("none" if number is None else f"{number:,.0f}" for number in numbers)
            rows.append(f"| `{name}` | {' | '.join(told)} |")
    variables = "".join(
        f"| `{PREFIX}{name}` | `{field}` | {getattr(budgets, name):,} |\n" for name, (field, _) in OVERRIDABLE.items()
    )
    sections = "".join(value_section(value) for value in AGENTS)
    return AGENTS_INTRO + sections + PROFILES_INTRO + "\n".join(rows) + "\n" + VARIABLES_INTRO + variables


def providers_page() -> str:
    """Every provider, setting and capability there is, from the tables themselves."""
    lines = ["", "| name | transport | address | key | another address |", "|---|---|---|---|---|"]
    lines += [provider_row(endpoint) for endpoint in BUILT_IN.values()]
    settings = "".join(f"| `{name}` | {SETTINGS[name]} |\n" for name in KNOWN)
    return "\n".join(lines).join((PROVIDERS_INTRO, "\n")) + "".join(
        (
            SETTINGS_INTRO,
            settings,
            AZURE,
            fields_section("Profiles", ModelProfile, UNKNOWN, "a model nobody described"),
            PROFILES_CHECKED.format(day=CHECKED),
            PRICES.format(
                sellers=", ".join(f"`{name}`" for name in sorted(SELLERS)), version=_version(), day=list_date()
            ),
            fields_section("Quirks of `openai_chat_completions`", Dialect, Dialect(), "default"),
            RESPONSES_QUIRKS,
            *(f"| `{name}` | {RESPONSES_QUIRK[name]} |\n" for name in QUIRKS),
            fields_section("Timeouts", Timeouts, Timeouts(), "default"),
            SETTINGS_OF_A_MODEL,
            value_section(ModelSettings).partition("\n## ModelSettings\n")[2],
            SPECIAL_INTRO,
            *(f"| `{name}` | {where} | {meaning} |\n" for (name, where), meaning in SPECIAL.items()),
            LIMITS,
            CLASSES,
        )
    )


def _version() -> str:
    return list_name().rpartition(" ")[2]


def cli_page() -> str:
    """Every command with its help, as a screen of 80 columns shows it."""
    parts = [CLI_INTRO]
    for title, names in GROUPS.items():
        parts.append(f"\n## {title}\n")
        parts += [_command_section(name) for name in names]
    return "".join(parts)


def _command_section(name: str) -> str:
    command = typer.main.get_command(app_of(name))
    context = command.make_context(
        f"wakeful {name}", [], resilient_parsing=True, terminal_width=80, max_content_width=80
    )
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    return f"\n### wakeful {name}\n\n```text\n{text}\n```\n"


def provider_row(endpoint: Endpoint) -> str:
    """One provider's line."""
    key = " or ".join(f"`{name}`" for name in endpoint.key_env)
    other = f"`{endpoint.name.upper().replace('-', '_')}_BASE_URL`"
    address = f"`{endpoint.base_url}`" if endpoint.base_url else "has to be configured"
    need = "" if endpoint.key_required else ", if it wants one"
    return f"| `{endpoint.name}` | `{endpoint.transport}` | {address} | {key}{need} | {other} |"


def fields_section(title: str, kind: type, example: Any, column: str) -> str:
    """A table of a dataclass's fields."""
    words = inspect.cleandoc(kind.__doc__ or "").replace("\n", " ")
    lines = [f"\n## {title}\n", words, "", f"| field | {column} | meaning |", "|---|---|---|"]
    meanings = {name: in_a_cell(words) for name, words in words_under_fields(kind).items()}
    for field in dataclasses.fields(kind):
        value = getattr(example, field.name)
        plain = sorted(value) if isinstance(value, frozenset) else list(value) if isinstance(value, tuple) else value
        lines.append(f"| `{field.name}` | `{json.dumps(plain)}` | {meanings.get(field.name, '')} |")
    return "\n".join(lines) + "\n"


def section(event: type[Event]) -> str:
    """One event's part of the page."""
    lines = [f"\n## `{event.kind}`\n", inspect.cleandoc(event.__doc__ or "").replace("\n", " "), ""]
    if event.aliases:
        lines.append("Also called: " + ", ".join(f"`{alias}`" for alias in event.aliases) + ".")
    lines.append("Needs: " + (", ".join(f"`{need}`" for need in event.needs) or "nothing") + ".")
    if event.outsider:
        lines.append("May be appended by somebody who does not own the agent.")
    if event.model_fields:
        lines += ["", "| field | type | meaning |", "|---|---|---|"]
    shapes = event_schema()["$defs"][event.__name__]["properties"]
    meanings = meanings_of(event)
    for name, field in event.model_fields.items():
        shown = f"**`{name}`**" if field.is_required() else f"`{name}`"
        lines.append(f"| {shown} | {type_of(shapes[name])} | {meanings.get(name, '')} |")
    return "\n".join(lines) + "\n"


def value_section(value: type[Value]) -> str:
    """One value's part of the page."""
    lines = [f"\n## {value.__name__}\n", inspect.cleandoc(value.__doc__ or "").replace("\n", " ")]
    lines += ["", "| field | type | default | meaning |", "|---|---|---|---|"]
    shapes = value.model_json_schema(mode="validation")["properties"]
    meanings = meanings_of(value)
    for name, field in value.model_fields.items():
        wire = field.alias or name
        shown = f"**`{wire}`**" if field.is_required() else f"`{wire}`"
        default = "" if field.is_required() else json.dumps(shapes[wire].get("default"))
        told = f"`{default}`" if 0 < len(default) < MAX_DEFAULT else ""
        lines.append(f"| {shown} | {type_of(shapes[wire])} | {told} | {meanings.get(name, '')} |")
    return "\n".join(lines) + "\n"


def words_section(words: type[StrEnum]) -> str:
    """The words that a value may be."""
    lines = [f"\n## {words.__name__}\n", inspect.cleandoc(words.__doc__ or "").replace("\n", " "), ""]
    return "\n".join([*lines, *(f"- `{word}`" for word in words)]) + "\n"


def type_of(shape: dict[str, Any]) -> str:
    """A JSON Schema as a person would say it."""
    if "anyOf" in shape or "oneOf" in shape:
        return " or ".join(type_of(one) for one in shape.get("anyOf") or shape["oneOf"])
    if "$ref" in shape:
        return str(shape["$ref"]).rsplit("/", 1)[1]
    if "enum" in shape:
        return ", ".join(f"`{value}`" for value in shape["enum"])
    if "const" in shape:
        return f"`{shape['const']}`"
    if shape.get("type") == "array":
        return f"list of {type_of(shape.get('items', {}))}"
    return str(shape.get("type", "any value"))


def meanings_of(value: type[Value]) -> dict[str, str]:
    """Field to its meaning in a table: what its description says, or the line that stands under it in the source."""
    found = {name: field.description for name, field in value.model_fields.items() if field.description}
    for owner in reversed(value.__mro__):
        if issubclass(owner, Value) and owner not in (Value, Event, agent_file()):
            found |= words_under_fields(owner)
    return {name: in_a_cell(words) for name, words in found.items()}


def in_a_cell(words: str) -> str:
    return words.replace("\n", " ").replace("|", "\\|")


if __name__ == "__main__":
    for name, content in pages().items():
        (HERE / name).write_text(content)
