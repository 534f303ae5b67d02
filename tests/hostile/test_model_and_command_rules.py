"""A hostile model against an owner's rules about commands: no other way to run the same command gets round them."""

from pathlib import Path
from typing import Any

import pytest

from kit.gates.hostile_model import COMMAND, attack
from wakeful import Always, RunResult, hook
from wakeful.bootstrap.engines import new_engine
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.policies import GatePolicy, Rule
from wakeful.decisions.policy.command_tools import BATCHES
from wakeful.decisions.policy.permissions import default_policy
from wakeful.service.commands.approvals import approvals, decide
from wakeful.tools.hooks import HookInput, HookVerdict
from wakeful.tools.local import command_batch, commands

BATCH = "wakeful/exec_command_batch"
ALLOWED = Rule(match="exec_command", arguments={"cmd": "touch *"}, decision="allow", id="touching")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def asking(root: Path, *rules: Rule, **more: Any) -> GatePolicy:
    """Commands need a person, but for what a rule allows."""
    tools = default_policy("library", profile="coding", workspace_root=str(root))
    return GatePolicy(tools=tools.model_copy(update={"ask": tools.ask | {"execute"}}), rules=rules, **more)


def batch(*items: str | dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return BATCH, {"items": [{"cmd": item} if isinstance(item, str) else item for item in items]}


def one(cmd: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return COMMAND, {"cmd": cmd, **more}


async def outcome(root: Path, call: tuple[str, Any], policy: GatePolicy | None, **more: Any) -> tuple[str, bool]:
    """How the run ended, and whether the command ran."""
    result = await attack(root, [call], policy=policy, **more)
    return result.status, (root / "ran").exists()


def test_the_rules_know_the_batch_by_its_name() -> None:
    assert dict(BATCHES) == {command_batch.NAME: (commands.NAME, "items")}


@pytest.mark.parametrize(
    "rule",
    [
        Rule(match="exec_command", decision="deny"),
        Rule(match="wakeful/exec_command", decision="deny"),
        Rule(match="exec_command", arguments={"cmd": "touch*"}, decision="deny"),
        Rule(match="exec_command", arguments={"cmd": "*ran*"}, decision="ask"),
        Rule(match="exec_command", arguments={"cmd": "*ran*"}, decision="ask", always_ask=True, approvers=("ann",)),
    ],
)
async def test_what_is_denied_or_asked_for_one_command_is_so_in_a_batch(root: Path, rule: Rule) -> None:
    wanted = "completed" if rule.decision == "deny" else "approval_required"
    policy = GatePolicy(tools=default_policy("library", profile="coding", workspace_root=str(root)), rules=(rule,))
    assert await outcome(root, batch("true", "touch ran", "true"), policy) == (wanted, False)
    assert await outcome(root, batch("true", "touch ran"), None) == ("completed", True), "without the rule it runs"


async def test_a_list_of_tools_that_need_a_person_covers_the_batch(root: Path) -> None:
    assert await outcome(root, batch("touch ran"), None, hitl_tools=["exec_command"]) == ("approval_required", False)


async def test_a_batch_is_allowed_only_where_each_of_its_commands_is(root: Path) -> None:
    policy = asking(root, ALLOWED, Rule(match="exec_command", arguments={"cmd": "ls*"}, decision="allow"))
    assert await outcome(root, batch("touch other", "rm -f other"), policy) == ("approval_required", False)
    assert await outcome(root, batch("touch other; touch ran"), policy) == ("approval_required", False)
    assert await outcome(root, batch("ls -l", "touch ran"), policy) == ("completed", True)


PLANTED = "#!/bin/sh\ntouch ran\n"


@pytest.mark.parametrize(
    "more",
    [
        {"shell": "./planted"},
        {"shell": "python3"},
        {"shell": "/bin/sh"},
        {"tty": True},
    ],
)
@pytest.mark.parametrize("in_batch", [False, True])
async def test_an_allowed_command_is_asked_about_when_it_would_run_otherwise_than_usual(
    root: Path, more: dict[str, Any], in_batch: bool
) -> None:
    (root / "planted").write_text(PLANTED)
    (root / "planted").chmod(0o755)
    call = batch({"cmd": "touch ran", **more}) if in_batch else one("touch ran", **more)
    assert await outcome(root, call, asking(root, ALLOWED)) == ("approval_required", False)


async def test_of_a_login_shell_and_another_one_an_allow_means_the_usual(root: Path) -> None:
    ended = {(await outcome(root, one("touch ran", login=login), asking(root, ALLOWED)))[0] for login in (True, False)}
    assert ended == {"completed", "approval_required"}


async def test_an_allow_that_names_no_command_means_every_way_to_run_one(root: Path) -> None:
    policy = asking(root, Rule(match="exec_command", decision="allow"))
    assert await outcome(root, one("touch ran", shell="/bin/sh", tty=True), policy) == ("completed", True)


async def test_a_rule_may_name_how_the_command_runs(root: Path) -> None:
    named = Rule(match="exec_command", arguments={"cmd": "touch *", "shell": "/bin/sh"}, decision="allow")
    assert await outcome(root, one("touch ran", shell="/bin/bash"), asking(root, named)) == ("approval_required", False)
    assert await outcome(root, one("touch ran"), asking(root, named)) == ("approval_required", False)
    assert await outcome(root, one("touch ran", shell="/bin/sh"), asking(root, named)) == ("completed", True)


async def test_as_usual_said_aloud_is_as_usual(root: Path) -> None:
    usual = one("touch ran", shell=None, tty=False, yield_time_ms=5_000, workdir=".")
    assert await outcome(root, usual, asking(root, ALLOWED)) == ("completed", True)


async def answered(root: Path, first: tuple[str, Any], always: Always) -> None:
    """A person says "always" to a first call."""
    store = root.parent / "state.db"
    asked = await attack(root, [first], policy=asking(root), store=store)
    assert asked.status == "approval_required"
    async with opened_store(store) as opened:
        (waiting,) = await approvals(new_engine(opened))
        await decide(new_engine(opened), waiting.approval_id, always)


async def then(root: Path, call: tuple[str, Any]) -> tuple[RunResult[Any], bool]:
    result = await attack(root, [call], policy=asking(root), store=root.parent / "state.db")
    return result, (root / "ran").exists()


@pytest.mark.parametrize(
    ("call", "runs"),
    [
        (one("touch ran"), True),
        (one("touch ran", shell="./planted"), False),
        (one("touch ran", tty=True), False),
        (batch("touch ran"), True),
        (batch("touch other", "rm other"), False),
        (batch({"cmd": "touch ran", "shell": "./planted"}), False),
    ],
)
async def test_always_for_a_pattern_means_commands_that_run_as_usual(
    root: Path, call: tuple[str, Any], runs: bool
) -> None:
    (root / "planted").write_text(PLANTED)
    (root / "planted").chmod(0o755)
    pattern = Always(scope="pattern", match="exec_command", arguments={"cmd": "touch *"})
    await answered(root, one("touch first"), pattern)
    result, ran = await then(root, call)
    assert (result.status, ran) == ("completed" if runs else "approval_required", runs)


async def test_always_for_this_very_call_means_no_other_shell_and_no_batch(root: Path) -> None:
    await answered(root, one("touch ran"), Always(scope="call"))
    for call in (one("touch ran", shell="/bin/sh"), one("touch ran", tty=True), batch("touch ran")):
        result, ran = await then(root, call)
        assert (result.status, ran) == ("approval_required", False)


async def test_a_hook_about_commands_is_asked_about_each_command_of_a_batch(root: Path) -> None:
    seen: list[tuple[str, Any]] = []

    @hook("pre_tool_use", match="exec_command")
    def no_removal(call: HookInput) -> HookVerdict:
        seen.append((call.tool, call.arguments.get("cmd")))
        return HookVerdict("deny", "no removal") if "rm " in call.arguments.get("cmd", "") else HookVerdict()

    calls = batch("true", "touch ran; rm other")
    assert await outcome(root, calls, None, hooks=[no_removal]) == ("completed", False)
    assert seen == [(COMMAND, "true"), (COMMAND, "touch ran; rm other")]
    assert await outcome(root, batch("true", "touch ran"), None, hooks=[no_removal]) == ("completed", True)


async def test_a_hook_about_commands_may_rewrite_one_of_a_batch(root: Path) -> None:
    @hook("pre_tool_use", match="exec_command")
    def otherwise(call: HookInput) -> HookVerdict:
        return HookVerdict(arguments={**call.arguments, "cmd": call.arguments["cmd"].replace("ran", "instead")})

    assert await outcome(root, batch("true", "touch ran"), None, hooks=[otherwise]) == ("completed", False)
    assert (root / "instead").exists()
