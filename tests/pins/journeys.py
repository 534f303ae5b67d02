"""What people type, journey by journey, on scripted scenarios. All that can be known of a run is looked at."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from kit.surfaces.command_line import FAIL, REFUND, SHIP, SHOP
from pins.terminal import Terminal
from wakeful import Agent, Runtime
from wakeful.testing import scripted

ROOT = Path(__file__).resolve().parents[2]
BANK = '''
from wakeful import Agent, ask_person, tool

@tool(effect="keyed", approval=lambda call: call.arguments["cents"] > 1_000)
def pay(order: str, cents: int, password: str = "") -> str:
    """Pay somebody."""
    return f"paid {cents}"

@tool(effect="pure")
def look(order: str) -> str:
    """Look it up."""
    return "seen"

@tool(external=True, timeout=3600)
def pick_file(folder: str) -> str:
    """Let the person pick a file."""
'''
READER = '''
from wakeful import Agent, tool
from wakeful.testing import scripted

@tool(effect="pure")
def read_page(number: str, password: str = "") -> str:
    """Read a page."""
    return f"page {number} " + "lorem " * 200

def answer(request):
    if request.level and "~compaction:" in request.level:
        return "The pages say lorem."
    if request.level == "~plan":
        return "1. read it all"
    if request.answered < 9:
        return {"calls": [{"name": "read_page", "arguments": {"number": str(request.answered % 6)}}]}
    return "I have read it all."

def split(request):
    if request.level:
        return "four thousand two hundred"
    if not request.answered:
        asked = {"title": "Prices", "instructions": "Look A17 up."}
        return {"calls": [{"name": "run_subtask", "arguments": asked}]}
    return "It is 42.00."

reader = Agent("reader", scripted(answer, context_window=4000), "Read.", tools=[read_page], planning_enabled=True)
splitter = Agent("splitter", scripted(split), "Split.", tools=[read_page], subtasks=True)
'''
BOOK = '''
from wakeful import Agent, tool
from wakeful.testing import scripted

@tool(effect="pure")
def read_book() -> str:
    """Read the whole book."""
    return "\\n".join(f"page {number}: a line of the book" for number in range(4000))

book = Agent("reader", scripted([{"calls": [{"name": "read_book", "arguments": {}}]}, "Read."]), tools=[read_book])
'''
FILES = {
    "shop.py": SHOP,
    "book.py": BOOK,
    "saver.yaml": "name: saver\nmodel: scripted:demo\nprofile: chat\nbudget: {per_month: {usd: 1.5}}\n",
    "NOTES.md": "Be brief.\n",
    "request.json": '{"package": {"slug": "shop"}, "workflow": {"id": "refund"}}',
    "bank.py": BANK,
    "reader.py": READER,
    "refund.yaml": REFUND,
    "ship.yaml": SHIP,
    "fail.yaml": FAIL,
    "pay.yaml": """
- calls:
  - {name: pay, arguments: {order: A17, cents: 4200, password: hunter2}}
  - {name: look, arguments: {order: A17}}
- Done.
""",
    "ask.yaml": """
- calls: [{name: wakeful/ask_person, arguments: {question: "Which one?", choices: [red, green]}}]
- Thank you.
""",
    "pick.yaml": "- calls: [{name: client/pick_file, arguments: {folder: docs}}]\n- You picked it.\n",
    "clerk.json": '{"agent": {"agent_slug": "clerk", "model": "scripted:refund.yaml", "tools": ["look_up", "refund"]},'
    ' "package_slug": "shop", "package_version": "2.0"}',
    "wakeful.yaml": "name: filed\nmodel: scripted:refund.yaml\nprofile: chat\ntools: [look_up, refund]\n",
}
RUN_REFUND = "run 'Refund A17.' --model scripted:refund.yaml --tools shop:both --profile chat"
RUN_SHIP = "run 'Ship A17.' --model scripted:ship.yaml --tools shop:ship --profile chat"
RUN_PAY = "run 'Pay A17.' --model scripted:pay.yaml --tools bank:pay --tools bank:look --profile chat"
RESUME_PAY = "resume $turn --tools bank:pay --tools bank:look"


Journey = Callable[[Terminal], None]
"""Types commands in a folder with `FILES`."""
JOURNEYS: dict[str, Journey] = {}


def journey(play: Journey) -> Journey:
    JOURNEYS[play.__name__] = play
    return play


@journey
def first_steps(typed: Terminal) -> None:
    """Before anything has been run, and words that are no command."""
    for command in ("--version", "events", "approvals", "unknown", "resume --list", "schema", "mcp list", "targets"):
        typed(command)
    for command in (
        "trust",
        "trust NOTES.md",
        "trust nothing.md",
        "store compact --dry-run",
        "store compact",
        "store verify",
        "store forget",
        "models list --provider vllm",
        "check .",
    ):
        typed(command)
    for command in ("mcp tools shop", "mcp approve shop", "mcp login shop", "package run request.json"):
        typed(command)
    for wrong in ("reply", "debug", "approvals aprove", "run", "run x --model opena:gpt-5.5", "tree turn_nope"):
        typed(wrong)
    typed("run x --model anthropic:claude-opus-4-7")
    typed("run x --tools shop:nothing")
    typed("run x --max-steps 0")


@journey
def a_run_and_its_views(typed: Terminal) -> None:
    typed("run hello --profile chat")
    typed(RUN_REFUND)
    for view in (
        *("events", "events $turn", "events $turn --as wire", "tree $turn", "why call_2_1", "cost", "cost --by agent"),
        *("status", "context $turn", "context $turn --step 2", "replay $turn", "resume $turn", "cancel $turn"),
        *("debug latency $turn", "debug context $turn", "resume --list", "events validate", "budget"),
    ):
        typed(view)
    typed.shape(RUN_REFUND, "run")
    for name in ("events", "tree", "replay", "context", "debug context", "resume", "debug latency"):
        typed.shape(f"{name} $turn", name.replace(" ", "-"))
    typed.shape("events $turn --as wire", "events-as-wire")
    typed.shape("why $turn/call_2_1", "why")
    typed.shape("events", "events-list")
    for name in ("cost", "status", "budget"):
        typed.shape(name, name)


@journey
def a_run_that_fails(typed: Terminal) -> None:
    typed("run hello --model scripted:fail.yaml --profile chat")
    typed("events $turn")
    typed("tree")
    typed(f"{RUN_REFUND} --budget-calls 1")
    typed("retry $turn")
    typed("retry --failed")
    typed("run hello --agent wakeful.yaml --tools shop:both")
    typed.shape("run hello --model scripted:fail.yaml --profile chat", "run-that-failed")


@journey
def demos(typed: Terminal) -> None:
    typed("demo")
    typed("demo crash --no-keep")


@journey
def artifacts_and_spending_limits(typed: Terminal) -> None:
    typed("run 'Read it.' --tools book:book --profile chat")
    typed("artifacts")
    (kept,) = typed.shape("artifacts", "artifacts")
    typed(f"artifacts show {kept['artifact_id'][7:15]} -o book.txt")
    typed("artifacts show nothing")
    typed("run hello --agent saver.yaml")
    typed("budget")
    typed("budget grant --agent saver --usd 2")
    typed("budget grant --agent nobody --usd 2")


@journey
def agents_of_a_runtime(typed: Terminal) -> None:
    asyncio.run(_runtime_once(typed.folder / "home"))
    typed("agent")
    typed("agent pause ops --for 8h --reason maintenance")
    typed("send ops 'Check the backups.' --key monday")
    typed("agent list")
    typed("agent resume ops")
    typed("agent stop ops")
    typed("send ops 'Too late.'")
    typed("agent pause nobody")


@journey
def agents_made_and_put_away(typed: Terminal) -> None:
    asyncio.run(_runtime_once(typed.folder / "home"))
    typed("agent create helper --model scripted:demo --instructions 'Help.'")
    typed("agent create helper --model scripted:demo")
    typed("agent show helper")
    typed("agent model helper scripted:demo")
    typed("agent history helper")
    typed("agent diff helper")
    typed("agent archive helper")
    typed("agent delete helper")
    typed("agent show nobody")


@journey
def everything_at_once(typed: Terminal) -> None:
    asyncio.run(_runtime_once(typed.folder / "home"))
    typed("why ops")
    typed("pause --all --reason 'wrong prices'")
    typed("why ops")
    typed("pause")
    typed("stop --all")
    typed("send ops 'Too late.'")
    typed("resume --all")
    typed("timer list")
    typed("timer cancel timer_1")
    typed("notices")
    typed("reload")
    typed("notify test ops")
    typed("send ops 'Are you there?'")
    typed("tail")
    typed("tail ops --display verbose")
    typed("tail --display loud")
    typed("transcript ops")


@journey
def triggers(typed: Terminal) -> None:
    asyncio.run(_runtime_once(typed.folder / "home"))
    typed("trigger")
    typed("trigger create ops ci --say 'A build reported in.'")
    typed("trigger create ops ci")
    typed("trigger deliver wkt_0a1b.c2d3 --body red")
    typed("trigger rotate ops/ci --reason 'it was in a log'")
    typed("trigger revoke ops/ci")
    typed("trigger list ops")
    typed("trigger url ops/ci")


@journey
def memory(typed: Terminal) -> None:
    asyncio.run(_runtime_once(typed.folder / "home"))
    typed("memory ops")
    typed("memory list ops --find backups")
    typed("memory list nobody")
    typed("memory show ops")
    typed("memory show ops --json")
    typed("memory show ops mem_3f2a9c")
    typed("memory edit ops mem_3f2a9c 'Deploys are on Mondays.'")
    typed("memory forget ops mem_3f2a9c")


@journey
def tasks_of_agents(typed: Terminal) -> None:
    asyncio.run(_runtime_once(typed.folder / "home"))
    typed("task")
    typed("task list ops --all")
    typed("task list --all")
    typed("task show task_9")
    typed("task output task_9")
    typed("task stop task_9")


@journey
def workspaces_of_an_agent(typed: Terminal) -> None:
    asyncio.run(_runtime_once(typed.folder / "home"))
    (typed.folder / "shop").mkdir()
    typed("workspace nobody")
    typed("workspace attach ops shop")
    typed("workspace use ops --path shop")
    typed.shape("workspace list ops", "workspaces")
    typed("workspace list nobody")
    typed("workspace use ops --path shop --isolated")
    typed("workspace use ops")
    typed("workspace detach ops agent_home")
    typed("workspace clean ops nothing")


async def _runtime_once(home: Path) -> None:
    """A program with an always-on agent, started and ended."""
    async with Runtime(home, agents=[Agent("ops", scripted(["Done."], leftover="ignore"), "Look after the backups.")]):
        pass


@journey
def approvals(typed: Terminal) -> None:
    typed(RUN_PAY)
    typed("approvals")
    typed("approvals list")
    typed("approvals show $appr")
    typed("approvals reask $appr")
    typed.shape("approvals", "approvals")
    typed.shape("approvals show $appr", "approvals-show")
    typed("why call_1_1")
    typed("resume --list")
    typed.shape("resume --list", "resume-list")
    typed("status")
    typed("approvals approve $appr --note fine")
    typed("approvals approve $appr")
    typed(RESUME_PAY)
    typed("approvals --all")
    typed("why call_1_1")
    typed("events $turn")


@journey
def approvals_decided_otherwise(typed: Terminal) -> None:
    typed(RUN_PAY)
    typed("approvals reject $appr too much")
    typed(RESUME_PAY)
    typed.shape(RUN_PAY, "run-that-rests")
    typed("approvals edit $appr cents=many")
    typed("approvals edit $appr cents=1500")
    typed(RESUME_PAY)
    typed(RUN_PAY)
    typed("approvals answer $appr paid by hand")
    typed(RESUME_PAY)
    typed(RUN_PAY)
    typed("approvals always $appr --for 7d")
    typed("approvals rules")
    typed.shape("approvals rules", "approvals-rules")
    typed("approvals revoke $rule")
    typed("approvals rules --all")
    typed("cancel $turn")
    typed("approvals show zzz")
    typed("run Ask --model scripted:ask.yaml --tools bank:ask_person --profile chat")
    typed("approvals answer $ask blue")
    typed("approvals answer $ask green")
    typed("resume $turn")


@journey
def unknown_outcome(typed: Terminal) -> None:
    typed(f"{RUN_SHIP} --key one", killed=True)
    typed("resume --list")
    typed("doctor")
    typed(f"{RUN_SHIP} --key one")
    typed("unknown")
    typed("why call_1_1")
    typed("tree")
    typed.shape("unknown", "unknown")
    typed("resolve call_1_2 --did-not-happen")
    typed("resolve call_1_1")
    typed("resolve call_1_1 --happened 'shipped at noon'")
    typed("resolve call_1_1 --did-not-happen")
    typed("unknown")


@journey
def a_run_that_was_cut_off(typed: Terminal) -> None:
    typed(RUN_REFUND, killed=True)
    typed("resume --tools shop:look_up")
    typed("pause $turn")
    typed("resume --tools shop:both")
    typed("interject $turn 'Be quick.'")
    typed("resume $turn --tools shop:both")
    typed("interject $turn 'Too late.'")
    typed("replay $turn")


@journey
def requests_to_a_client(typed: Terminal) -> None:
    typed("run 'Pick one.' --model scripted:pick.yaml --tools bank:pick_file --profile chat")
    typed("requests")
    typed("requests show $runtime-tool")
    typed.shape("requests", "requests")
    typed('requests submit $runtime-tool \'{"file": "a.txt"}\'')
    typed("requests cancel $runtime-tool")
    typed("resume $turn")
    typed("run 'Pick one.' --model scripted:pick.yaml --tools bank:pick_file --profile chat")
    typed("requests timeout $runtime-tool")
    typed("requests list")


@journey
def levels_and_phases(typed: Terminal) -> None:
    typed("run 'Read it.' --tools reader:reader --profile chat")
    typed("context")
    typed("tree")
    typed.shape("context", "context-with-summaries")
    typed("run 'What is A17?' --tools reader:splitter --profile chat")
    typed("tree")
    typed("events $turn")
    typed("cost --by depth")
    typed.shape("tree", "tree-with-levels")


@journey
def workflows(typed: Terminal) -> None:
    for name in ("refund.workflow.json", "refund_workflow.py"):
        shutil.copy(ROOT / "examples" / name, typed.folder / name)
    code = "--tools refund_workflow:code"
    typed(f"workflow validate refund.workflow.json {code}")
    typed("workflow validate refund.workflow.json")
    typed(f"workflow nodes --profile chat {code}")
    typed(f"workflow save refund.workflow.json {code}")
    typed("workflow list")
    typed("workflow show refund")
    typed("workflow show refund --mermaid")
    typed(f"workflow run refund --input order=A17 {code}")
    typed("approvals answer $ask yes")
    typed(f"resume $turn {code}")
    typed("tree")
    typed.shape("workflow list", "workflow-list")
    typed.shape("workflow show refund", "workflow-show")
    typed.shape(f"workflow validate refund.workflow.json {code}", "workflow-validate")
    typed.shape(f"workflow save refund.workflow.json {code}", "workflow-save")
    typed("workflow delete refund")
    typed("workflow run refund")


@journey
def dispatch(typed: Terminal) -> None:
    typed("package import clerk.json --tools shop:both")
    typed("targets")
    typed("dispatch run 'Refund it.' --run-id r1 --tools shop:both")
    typed("dispatch list")
    typed("dispatch show r1")
    typed("dispatch resume r1 --tools shop:both")
    typed("dispatch cancel r1")
    for name in ("dispatch list", "dispatch show r1", "targets"):
        typed.shape(name, name.replace(" r1", "").replace(" ", "-"))


@journey
def tools_models_and_the_machine(typed: Terminal) -> None:
    typed("tools --tools shop:everything --tools bank:pay --profile chat")
    typed("tools --profile coding")
    typed("debug prompt --tools reader:splitter --profile chat")
    typed("models show scripted:demo")
    typed("models show openai:gpt-5.5")
    typed("models show deepseek:deepseek-v5-flash")
    typed("models test scripted:demo")
    typed("run hello --profile chat")
    typed("doctor")
    typed.shape("tools --profile coding", "tools")
    typed.shape("models show openai:gpt-5.5", "models-show")
    typed.shape("models list", "models-list")
    typed.shape("models test scripted:demo", "models-test")
    typed.shape("doctor", "doctor")
    typed.shape("debug prompt --tools reader:splitter --profile chat", "debug-prompt")


@journey
def a_deleted_conversation(typed: Terminal) -> None:
    """A thread that waits is refused; one that is over is deleted."""
    typed(f"{RUN_PAY} --thread mia")
    for command in ("thread", "thread list", "thread list --json", "thread delete mia", "cancel $turn"):
        typed(command)
    for command in ("thread delete mai", "thread delete main", "thread delete mia", "thread delete mia --json"):
        typed(command)
    for command in ("thread", "events", "store compact", "tree $turn"):
        typed(command)
