"""What an owner says about calls, field by field: classes, rules, people, where a turn comes from."""

from pathlib import Path
from typing import Any

from kit.bites import Bites
from kit.bites.declared import Declared
from kit.mcp_peers.asking import Odd
from kit.runs.asked_runs import REFUND, World, agent, asked, say
from kit.runs.engine_runs import of_kind
from kit.runs.level_scripts import LevelModel
from wakeful import Agent, Approve, RunResult, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.errors import NotEntitled
from wakeful.contracts.events import PermissionEvaluated, ToolFailed
from wakeful.contracts.policies import GatePolicy, ProvenancePolicy, Rule, ToolPolicy
from wakeful.contracts.tools import Confinement
from wakeful.decisions.policy.permissions import default_policy
from wakeful.engine.run_request import MessageOrigin, RunRequest
from wakeful.service.commands.turns import run_turn
from wakeful.store.memory import MemoryStore

POLICY = Bites()
TOOLS = Bites()
RULES = Bites()
LIBRARY = default_policy("library")
CHAT = ToolPolicy(context="thread", classes=frozenset({"safe", "external_write"}), ask=frozenset({"external_write"}))
"""Where a call of the refund tool needs a person, because of its class."""
RAN: tuple[str, list[str]] = ("completed", ["refund"])
ASKED: tuple[str, list[str]] = ("approval_required", [])
DENIED: tuple[str, list[str]] = ("completed", [])


async def refund(policy: GatePolicy, **options: Any) -> tuple[RunResult[Any], tuple[str, list[str]]]:
    """A call of the refund tool under a policy, and what came of it."""
    world = World()
    result = await run(agent([world.tool()], (REFUND,), policy=policy, **options), "go", store=MemoryStore())
    return result, (result.status, world.names)


async def ruled(*rules: Rule, tools: ToolPolicy = LIBRARY, **options: Any) -> tuple[str, list[str]]:
    return (await refund(GatePolicy(tools=tools, rules=rules), **options))[1]


# --- the policy as a whole -------------------------------------------------------------------------------------------


@POLICY.of("policy.hitl_tools", ((), RAN), (("refund",), ASKED))
async def _listed(value: tuple[str, ...], folder: Path) -> Any:
    return (await refund(GatePolicy(tools=LIBRARY, hitl_tools=value)))[1]


@POLICY.of("policy.provenance.external_evidence", ("allow", RAN), ("ask", ASKED), ("deny", DENIED))
async def _evidence(value: Any, folder: Path) -> Any:
    world = World()
    policy = GatePolicy(tools=LIBRARY, provenance=ProvenancePolicy(external_evidence=value))
    request = RunRequest(
        agent([world.tool()], (REFUND,), policy=policy), "go", origin=MessageOrigin(authority="external_evidence")
    )
    return (await run_turn(new_engine(MemoryStore()), request)).status, world.names


@POLICY.of("policy.provenance.all_three", ("ask", ASKED), ("deny", DENIED))
async def _three(value: Any, folder: Path) -> Any:
    world = World()
    mail = tool(lambda: "a letter", name="mail", effect="pure", reads_private=True)
    page = tool(lambda: "any words", name="page", effect="pure", leaves_machine=True)
    policy = GatePolicy(tools=LIBRARY, provenance=ProvenancePolicy(all_three=value))
    rounds = (("mail",), ("page",), (REFUND,))
    result = await run(agent([world.tool(reads_private=False), mail, page], *rounds, policy=policy), "go")
    return result.status, world.names


@POLICY.of("policy.provenance.derived", ("ask", ASKED), ("deny", DENIED))
async def _derived(value: Any, folder: Path) -> Any:
    world = World()
    page = tool(lambda: "any words", name="page", effect="pure", untrusted=True)
    policy = GatePolicy(tools=LIBRARY, provenance=ProvenancePolicy(derived=value))
    result = await run(agent([world.tool(), page], ("page",), (REFUND,), policy=policy), "go")
    return result.status, world.names


# --- classes ---------------------------------------------------------------------------------------------------------


@TOOLS.of("policy.tools.context", ("library", RAN), ("thread", ASKED))
async def _context(value: Any, folder: Path) -> Any:
    return await ruled(tools=CHAT.model_copy(update={"context": value}))


@TOOLS.of("policy.tools.classes", (frozenset({"safe"}), DENIED), (frozenset({"safe", "external_write"}), RAN))
async def _classes(value: Any, folder: Path) -> Any:
    return await ruled(tools=ToolPolicy(context="library", classes=value))


@TOOLS.of("policy.tools.ask", (frozenset(), RAN), (frozenset({"external_write"}), ASKED))
async def _asking(value: Any, folder: Path) -> Any:
    return await ruled(tools=CHAT.model_copy(update={"ask": value}))


@TOOLS.of("policy.tools.workspace_root", (False, False), (True, True))
async def _root(has_one: bool, folder: Path) -> Any:
    model = LevelModel({"go": ["done"]})
    policy = GatePolicy(tools=default_policy("library", workspace_root=str(folder) if has_one else None))
    await run(Agent("desk", model, workspace=folder, policy=policy), "go")
    return any(name.endswith("write_file") for name in model.seen[0].tools)


@TOOLS.of("policy.tools.allowed_mcp_servers", ((), []), (("odd",), ["mcp.odd/reads"]))
async def _servers(value: tuple[str, ...], folder: Path) -> Any:
    odd, model = Odd(folder, "well"), LevelModel({"go": ["done"]})
    policy = GatePolicy(tools=default_policy("library", allowed_mcp_servers=value))
    try:
        await run(Agent("desk", model, tools=[odd.source], policy=policy), "go")
    finally:
        await odd.source.close()
    return [name for name in model.seen[0].tools if name == "mcp.odd/reads"]


@TOOLS.of(
    "policy.tools.unconfined",
    ("allow", ("completed", ["command"])),
    ("ask", ("approval_required", [])),
    ("deny", ("completed", [])),
)
async def _unconfined(value: Any, folder: Path) -> Any:
    command = Declared("command", Confinement(mode="not_enforced", cwd="/"), permission_class="execute")
    policy = GatePolicy(tools=default_policy("library", unconfined=value))
    result = await run(agent([command], ("command",), policy=policy), "go", store=MemoryStore())
    return result.status, command.ran


# --- rules -----------------------------------------------------------------------------------------------------------


@RULES.of("policy.rules.match", ("re*", DENIED), ("other", RAN))
async def _match(value: str, folder: Path) -> Any:
    return await ruled(Rule(match=value, decision="deny"))


@RULES.of("policy.rules.decision", ("allow", RAN), ("ask", ASKED), ("deny", DENIED))
async def _decision(value: Any, folder: Path) -> Any:
    return await ruled(Rule(match="refund", decision=value), tools=CHAT)


@RULES.of("policy.rules.arguments", ({"order": "A*"}, DENIED), ({"order": "B*"}, RAN))
async def _arguments(value: dict[str, str], folder: Path) -> Any:
    return await ruled(Rule(match="refund", decision="deny", arguments=value))


@RULES.of("policy.rules.capabilities", ((), DENIED), (("browser",), RAN))
async def _capabilities(value: tuple[str, ...], folder: Path) -> Any:
    return await ruled(Rule(match="*", decision="deny", capabilities=value))


@RULES.of("policy.rules.call_hash", (None, DENIED), ("another call's", RAN))
async def _call_hash(value: str | None, folder: Path) -> Any:
    return await ruled(Rule(match="refund", decision="deny", call_hash=value))


@RULES.of("policy.rules.reason", ("closed on Sundays", True), ("", False))
async def _reason(value: str, folder: Path) -> Any:
    rule = Rule(match="refund", decision="deny", arguments={"order": "*"}, reason=value)
    result, _ = await refund(GatePolicy(tools=LIBRARY, rules=(rule,)))
    (failed,) = of_kind(result, ToolFailed)
    return "closed on Sundays" in failed.message


@RULES.of("policy.rules.expires", (None, DENIED), (1.0, RAN))
async def _expires(value: float | None, folder: Path) -> Any:
    return await ruled(Rule(match="refund", decision="deny", expires=value))


@RULES.of("policy.rules.approvers", ((), "approved"), (("bob",), NotEntitled))
async def _approvers(value: tuple[str, ...], folder: Path) -> Any:
    store = MemoryStore()
    policy = GatePolicy(tools=LIBRARY, rules=(Rule(match="refund", decision="ask", approvers=value),))
    waiting = await asked(agent([World().tool()], (REFUND,), policy=policy), store)
    try:
        return (await say(store, waiting.approvals[0], Approve(), by="ada")).approval.status
    except NotEntitled:
        return NotEntitled


def standing(by: str = "ada", **more: Any) -> Rule:
    return Rule(**{"match": "refund", "decision": "allow", "origin": "always", "decided_by": by, **more})


@RULES.of("policy.rules.always_ask", (False, RAN), (True, ASKED))
async def _always_ask(value: bool, folder: Path) -> Any:
    return await ruled(Rule(match="refund", decision="ask", always_ask=value), standing())


@RULES.of("policy.rules.origin", ("owner", ASKED), ("always", RAN))
async def _origin(value: Any, folder: Path) -> Any:
    return await ruled(standing(origin=value), hitl_tools=["refund"])


@RULES.of("policy.rules.decided_by", ("ada", RAN), ("eve", ASKED))
async def _decided_by(value: str, folder: Path) -> Any:
    return await ruled(Rule(match="refund", decision="ask", approvers=("ada",)), standing(value))


@RULES.of("policy.rules.id", ("", ("owner:1",)), ("money", ("money",)))
async def _id(value: str, folder: Path) -> Any:
    rule = Rule(match="refund", decision="allow", arguments={"order": "A*"}, id=value)
    result, _ = await refund(GatePolicy(tools=CHAT, rules=(rule,)))
    (verdict,) = of_kind(result, PermissionEvaluated)
    return verdict.rule_refs
