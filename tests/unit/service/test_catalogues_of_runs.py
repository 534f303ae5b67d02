"""The catalogue that a run puts on record: every tool with what policy makes of it, and its flags."""

from typing import Any

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, GatePolicy, Rule, ToolPolicy, run, tool
from wakeful.contracts.events import ToolCatalogResolved, ToolStarted
from wakeful.contracts.tool_catalog import CatalogEntry, ToolCatalog
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.permissions import default_policy
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.tools.client import ClientTool
from wakeful.tools.source import Offer, ToolSource, WithheldTool

EVERY_CLASS = ToolPolicy(context="library", classes=frozenset({"safe", "external_write", "network"}))
RULES = (
    Rule(match="shut", decision="deny", reason="closed on Sundays"),
    Rule(match="post", decision="ask", reason="posts are seen"),
)


@tool(effect="pure")
def look() -> str:
    """Looks.

    At length."""
    return "seen"


@tool(effect="irreversible", leaves_machine=True)
def post(text: str) -> str:
    """\x1b[2JPosts\u202e something."""
    return text


@tool(effect="pure")
def shut() -> str:
    """Is not open."""
    return ""


class Down(ToolSource):
    """A server that does not answer, and one tool that a policy hides."""

    name = "mail"

    async def offer(self) -> Offer:
        hidden = WithheldTool("hidden", "the policy of the run leaves it out", status="denied")
        return Offer((), (WithheldTool("mail/send", "the server mail does not answer", "Sends mail"), hidden))


def client(**fields: Any) -> ClientTool:
    return ClientTool(ToolDeclaration(name="client/pick", input_schema={"type": "object"}, effect="pure", **fields))


async def catalogue(*more: Any, policy: GatePolicy | None = None, **options: Any) -> dict[str, CatalogEntry]:
    """The entries on record for a run, by name."""
    store, seen = MemoryStore(), []

    def reply(request: Any) -> str:
        seen.append([each.name for each in request.tools])
        return "done"

    ruled = policy if policy is not None else GatePolicy(tools=EVERY_CLASS, rules=RULES)
    agent = Agent("shop", scripted(reply), tools=[look, post, shut, Down(), *more], policy=ruled, **options)
    result = await run(agent, "go", store=store)
    (event,) = [each.fact.event for each in result.facts() if isinstance(each.fact.event, ToolCatalogResolved)]
    found = ToolCatalog.model_validate_json(await store.get_blob(event.catalog_ref.digest))
    assert set(seen[0]) == set(found.offered), "the model is told of what is offered, by the same names"
    return {entry.tool_name: entry for entry in found.entries}


@pytest.mark.spec("STD-CAT-02", "STD-CAT-03", "STD-CAT-04")
async def test_an_entry_has_its_name_a_safe_line_and_its_schema() -> None:
    entries = await catalogue()
    assert list(entries)[:3] == ["look", "post", "shut"]
    assert entries["look"].description == "Looks."
    assert entries["post"].description.isprintable() and "Posts" in entries["post"].description
    assert all((each.input_schema is None) != (each.input_schema_ref is None) for each in entries.values())
    assert entries["post"].input_schema is None or "text" in entries["post"].input_schema["properties"]


@pytest.mark.spec("STD-CAT-06", "STD-CAT-12")
async def test_what_a_policy_or_a_server_leaves_out_is_listed_with_the_reason() -> None:
    entries = await catalogue()
    assert {name: entry.policy for name, entry in entries.items()} == {
        "look": "allowed",
        "post": "ask",
        "shut": "denied",
        "mail/send": "unavailable",
        "hidden": "denied",
    }
    assert entries["shut"].policy_reason == "closed on Sundays"
    assert entries["mail/send"].policy_reason == "the server mail does not answer"
    assert all(entry.policy_reason for entry in entries.values())


@pytest.mark.spec("STD-CAT-05", "STD-CAT-07")
async def test_an_entry_names_its_capabilities_and_who_runs_it() -> None:
    entries = await catalogue(client(capabilities=("read", "gpu")), subtasks=True)
    assert {"read", "custom:gpu", "custom:client"} <= set(entries["client/pick"].capabilities)
    known = {"read", "write", "network", "browser", "filesystem", "shell", "artifact"}
    for entry in entries.values():
        assert all(flag in known or flag.startswith("custom:") for flag in entry.capabilities)
    owners = {name.rpartition("/")[2]: entry.runtime_owner for name, entry in entries.items()}
    assert (owners["look"], owners["pick"], owners["run_subtask"]) == ("local", "hosted_connector", "subagent")


@pytest.mark.spec("STD-CAT-09", "STD-CAT-10")
async def test_flags_are_as_declared_and_at_their_worst_where_nobody_declared_them() -> None:
    entries = await catalogue(client())

    def flags(name: str) -> tuple[bool, bool, bool, str]:
        each = entries[name]
        return each.is_read_only, each.is_concurrency_safe, each.is_destructive, each.interrupt_behavior

    assert flags("look")[:3] == (True, True, False)
    assert flags("post")[0] is False and flags("post")[2] is True
    assert flags("mail/send") == (False, False, True, "block"), "nobody can say anything about it"


@pytest.mark.spec("LOOP-PERM-08")
async def test_a_tool_from_outside_and_one_that_reads_secrets_run_alone() -> None:
    entries = await catalogue(client())
    assert entries["client/pick"].is_concurrency_safe is False
    assert (await catalogue(client(parallel_safe=True)))["client/pick"].is_concurrency_safe is True
    # In a run: of two tools in one reply, those that read secrets are scheduled one after the other.
    opened = GatePolicy(tools=default_policy("editor", secrets=True))
    for permission_class, scheduling in (("safe", "parallel"), ("secrets", "serial")):
        pair = [
            tool(lambda: "read", name=name, description="Reads.", effect="pure", permission_class=permission_class)
            for name in ("one", "two")
        ]
        agent = Agent("a", scripted([calls("one", "two"), "done"]), tools=pair, policy=opened)
        result = await run(agent, "go")
        started = [each.fact.event for each in result.facts() if isinstance(each.fact.event, ToolStarted)]
        assert result.completed and {event.scheduling for event in started} == {scheduling}
