"""The store in Python: another process decides, a killed one leaves an unknown outcome, a third follows. Real files."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kit.surfaces.command_line import command_line
from wakeful import (
    Agent,
    Always,
    Answer,
    Approve,
    DidNotHappen,
    Edit,
    GatePolicy,
    Happened,
    Reject,
    Rule,
    StoreHandle,
    ask_person,
    cancel,
    open_store,
    resume,
    run,
    run_sync,
    tool,
)
from wakeful.errors import (
    AlreadyDecided,
    ApprovalNotFound,
    ArtifactNotFound,
    InvalidRequest,
    NotEntitled,
    StoreProblem,
    TurnNotFound,
)
from wakeful.testing import scripted
from wakeful.views.approval_details import ApprovalDetails

SHOP = '''
import os, signal, sys
from pathlib import Path
from wakeful import Agent, run_sync, tool
from wakeful.testing import scripted

@tool(effect="irreversible")
def ship(order: str) -> str:
    """Send it."""
    if os.environ.get("CRASH"):
        os.kill(os.getpid(), signal.SIGKILL)
    return f"shipped {order}"

@tool(effect="pure")
def wait_for(file: str) -> str:
    """Until the file is there."""
    import time
    while not Path(file).exists():
        time.sleep(0.01)
    return "it is there"

steps = [{"calls": [{"name": sys.argv[2], "arguments": json}]} for json in [eval(sys.argv[3])]]
agent = Agent("shop", scripted([*steps, "Done."]), tools=[ship, wait_for])
run_sync(agent, "go", store=sys.argv[1], key="one", thread="main")
'''


@tool(effect="irreversible", approval=True)
def refund(order: str, cents: int, password: str = "") -> str:
    """Give the money back."""
    return f"refunded {cents} for {order}"


def clerk(*more: Any, **options: Any) -> Agent[None, str]:
    asked = {"calls": [{"name": "refund", "arguments": {"order": "A17", "cents": 4200, "password": "hunter2"}}]}
    return Agent("clerk", scripted([asked, "Done."], leftover="ignore"), tools=[refund, *more], **options)


def python(program: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAKEFUL_HOME", str(tmp_path / "home"))
    return tmp_path / "runs.db"


def command(place: Path, *arguments: str) -> Any:
    """What the command line prints as JSON."""
    done = subprocess.run(
        command_line(*arguments, "--json", "--store", str(place)), capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- approvals --------------------------------------------------------------------------------------------------------

DECIDES = """
import sys
from wakeful import Approve, open_store
store = open_store(sys.argv[1])
[approval] = store.approvals()
print(store.decide(approval.approval_id, Approve("fine"), by="ann").decided_by)
"""


def test_another_process_decides_and_the_same_line_goes_on(place: Path) -> None:
    waiting = run_sync(clerk(), "A17 is broken", store=place, key="t1")
    assert waiting.status == "approval_required"
    done = python(DECIDES, str(place))
    assert (done.stdout, done.stderr) == ("app:ann\n", "")
    assert run_sync(clerk(), "A17 is broken", store=place, key="t1").output == "Done."


def test_what_is_pending_is_listed_as_the_command_line_lists_it(place: Path) -> None:
    run_sync(clerk(), "A17 is broken", store=place, key="t1")
    store = open_store(place)
    (approval,) = store.approvals()
    assert (approval.tool, approval.call_id, approval.agent) == ("refund", "call_1_1", "clerk")
    assert approval.arguments == {"order": "A17", "cents": 4200, "password": "[redacted]"}
    assert command(place, "approvals") == [approval.model_dump(mode="json")]
    assert store.approval(approval.approval_id[:12]) == ApprovalDetails(**dict(approval))
    assert store.approvals(approval.turn_id) == [approval]


def test_the_second_who_decides_is_told_who_was_first_and_when(place: Path) -> None:
    run_sync(clerk(), "A17 is broken", store=place, key="t1")
    store = open_store(place)
    (approval,) = store.approvals()
    first = store.decide(approval.approval_id, Reject("too much"), by="ann")
    with pytest.raises(AlreadyDecided, match=r"was rejected already by app:ann at \d{4}-") as told:
        store.decide(approval.approval_id, Approve(), by="ben")
    assert (told.value.decided_by, told.value.decided_at) == ("app:ann", first.decided_at)
    assert store.approvals() == [] and store.approvals(decided=True) == [first]
    with pytest.raises(ApprovalNotFound):
        store.decide("nothing", Approve(), by="ann")


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (Edit({"order": "A17", "cents": 100}), "refunded 100 for A17"),
        (Answer("a voucher instead"), "a voucher instead"),
        (Always(scope="tool"), "refunded 4200 for A17"),
    ],
)
def test_every_kind_of_decision_does_what_it_does_on_the_command_line(place: Path, decision: Any, said: str) -> None:
    run_sync(clerk(), "A17 is broken", store=place, key="t1")
    store = open_store(place)
    (approval,) = store.approvals()
    decided = store.decide(approval.approval_id, decision, by="ann")
    assert decided.decision == type(decision).__name__.lower()
    done = run_sync(clerk(), "A17 is broken", store=store, key="t1")
    assert done.calls("refund")[0].result == said


def test_a_question_is_answered(place: Path) -> None:
    asks = {"calls": [{"name": "wakeful/ask_person", "arguments": {"question": "Which one?"}}]}
    agent = Agent("any", scripted([asks, "Thanks."]), tools=[ask_person])
    run_sync(agent, "go", store=place, key="t1")
    store = open_store(place)
    (question,) = store.approvals()
    assert (question.kind, question.prompt) == ("question", "Which one?")
    store.decide(question.approval_id, Answer("the blue one"), by="ann")
    assert run_sync(agent, "go", store=place, key="t1").output == "Thanks."


@pytest.mark.parametrize("by", ["", "  ", "a\nb", None])
def test_who_decides_has_to_be_said(place: Path, by: Any) -> None:
    run_sync(clerk(), "A17 is broken", store=place, key="t1")
    store = open_store(place)
    (approval,) = store.approvals()
    with pytest.raises(InvalidRequest, match="by="):
        store.decide(approval.approval_id, Approve(), by=by)
    with pytest.raises(InvalidRequest, match="True"):
        store.decide(approval.approval_id, True, by="ann")  # type: ignore[arg-type]
    assert store.approvals() == [approval]


@pytest.mark.parametrize("threaded", [True, False])
def test_a_tool_may_not_decide_and_the_same_line_outside_one_may(place: Path, threaded: bool) -> None:
    run_sync(clerk(), "A17 is broken", store=place, key="t1")
    (approval,) = open_store(place).approvals()

    @tool(effect="pure")
    def sync_attempt() -> str:
        """Try it."""
        return open_store(place).decide(approval.approval_id, Approve(), by="ann").status

    @tool(effect="pure")
    async def async_attempt() -> str:
        """Try it."""
        async with open_store(place) as store:
            return (await store.decide(approval.approval_id, Approve(), by="ann")).status

    attempt = sync_attempt if threaded else async_attempt
    agent = Agent("sly", scripted([{"calls": [{"name": attempt.name}]}, "Done."]), tools=[attempt])
    (call,) = run_sync(agent, "go", store=place).calls()
    assert call.status == "error" and "may not decide" in str(call.error)
    assert open_store(place).approvals() == [approval]
    assert open_store(place).decide(approval.approval_id, Approve(), by="ann").status == "approved"  # the inversion


# --- after a kill -----------------------------------------------------------------------------------------------------


def test_a_killed_process_leaves_an_unknown_outcome_that_a_program_resolves(place: Path) -> None:
    killed = python(SHOP, str(place), "ship", "{'order': 'A17'}", CRASH="1")
    assert killed.returncode == -signal.SIGKILL
    store = open_store(place)
    (turn,) = store.turns()
    assert turn.is_open and turn.key == "one"
    assert python(SHOP, str(place), "ship", "{'order': 'A17'}").returncode == 0
    (unknown,) = store.unknown()
    assert (unknown.tool, unknown.arguments, unknown.turn_id) == ("ship", {"order": "A17"}, turn.turn_id)
    assert command(place, "unknown") == [unknown.model_dump(mode="json")]
    with pytest.raises(InvalidRequest, match="Happened"):
        store.resolve(unknown.call_id, "yes")  # type: ignore[arg-type]
    store.resolve(unknown.reference, Happened({"parcel": 7}), by="ann")
    assert store.unknown() == []
    (said,) = [event for event in store.events(turn.turn_id) if event.type == "unknown.resolved"]
    assert (said.payload["resolved_by"], said.payload["result"]) == ("app:ann", '{"parcel": 7}')


def test_a_call_that_did_not_happen_is_said_so(place: Path) -> None:
    python(SHOP, str(place), "ship", "{'order': 'A17'}", CRASH="1")
    python(SHOP, str(place), "ship", "{'order': 'A17'}")
    store = open_store(place)
    assert store.resolve(store.unknown()[0].call_id, DidNotHappen()).tool == "ship"
    assert store.unknown() == []


async def test_a_turn_of_another_process_is_followed_until_its_end(place: Path) -> None:
    go = place.with_name("go")
    arguments = [sys.executable, "-c", SHOP, str(place), "wait_for", f"{{'file': {str(go)!r}}}"]
    process = subprocess.Popen(arguments)
    seen: list[str] = []
    try:
        async with open_store(place) as store:
            turns = await store.turns(key="one")
            while not turns:
                await asyncio.sleep(0.01)
                turns = await store.turns(key="one")
            async for event in store.events(turns[0].turn_id, follow=True):
                seen.append(event.type)
                if event.type == "tool.started":
                    go.touch()
            stored = [event.type async for event in store.events("one")]
    finally:
        go.touch()
        process.wait(timeout=240)
    assert seen == stored and seen[0] == "message.admitted" and seen[-1] == "turn.completed"
    assert process.returncode == 0


# --- looking ----------------------------------------------------------------------------------------------------------


def test_turns_are_found_by_state_thread_agent_and_key_and_named_by_id_key_or_prefix(place: Path) -> None:
    one = Agent("one", scripted(["A."]))
    first = run_sync(one, "first", store=place, thread="talk", key="k1")
    second = run_sync(one, "second", store=place, thread="talk")
    waits = run_sync(clerk(), "third", store=place, key="k3")
    store = open_store(place)
    assert [turn.turn_id for turn in store.turns()] == [waits.turn_id, second.turn_id, first.turn_id]
    assert [turn.turn_id for turn in store.turns(thread="talk")] == [second.turn_id, first.turn_id]
    assert [turn.turn_id for turn in store.turns("suspended")] == [waits.turn_id]
    assert [turn.prompt for turn in store.turns(agent="one", limit=1)] == ["second"]
    assert [turn.prompt for turn in store.turns(agent="one", limit=1, before=second.turn_id)] == ["first"]
    assert [turn.turn_id for turn in store.turns(key="k1")] == [first.turn_id]
    assert store.turns(key="k1", agent="clerk") == []
    found = {store.turn(name).turn_id for name in (first.turn_id, "k1", first.turn_id[:-2])}
    assert found == {first.turn_id}
    with pytest.raises(TurnNotFound, match="matches 3 turns"):
        store.turn(first.turn_id[:9])
    with pytest.raises(TurnNotFound, match="no turn 'k9'"):
        store.turn("k9")
    lines = subprocess.run(command_line("events", "--json", "--store", str(place)), capture_output=True, text=True)
    listed = [json.loads(line) for line in lines.stdout.splitlines()]
    assert listed == [turn.model_dump(mode="json") for turn in store.turns()]
    with pytest.raises(InvalidRequest, match="limit=0"):
        store.turns(limit=0)


def test_a_chat_page_finds_its_threads_and_their_messages_after_a_reload(place: Path) -> None:
    agent = Agent("chat", scripted(["Hello."]))
    run_sync(agent, "Hi.", store=place, thread="ann")
    run_sync(agent, "What?", store=place, thread="ann", model=scripted(["I said hello."]))
    store = open_store(place)
    (thread,) = store.threads()
    assert (thread.thread, thread.agent, thread.turns, thread.last_turn.prompt) == ("ann", "chat", 2, "What?")
    assert store.threads("nobody") == []
    said = store.messages("ann")
    assert [(each.role, each.content) for each in said] == [
        ("user", "Hi."),
        ("assistant", "Hello."),
        ("user", "What?"),
        ("assistant", "I said hello."),
    ]
    assert store.messages("ann", limit=2) == said[2:]
    assert store.messages("ann", limit=2, before=said[2].event_seq) == said[:2]
    assert store.messages("new") == []
    run_sync(Agent("other", scripted(["Yes."])), "Hi.", store=place, thread="ann")
    with pytest.raises(InvalidRequest, match="2 agents have a thread 'ann'"):
        store.messages("ann")
    assert store.messages("ann", agent="chat") == said
    with pytest.raises(InvalidRequest, match="'cat' has no thread"):
        store.messages("ann", agent="cat")


def test_an_artifact_is_listed_and_read_with_the_runs_secrets_hidden(place: Path) -> None:
    @tool(effect="pure")
    def report(password: str) -> str:
        """A long report."""
        return f"line with {password}\n" * 20_000

    call = {"calls": [{"name": "report", "arguments": {"password": "hunter2!"}}]}
    done = run_sync(Agent("any", scripted([call, "Done."]), tools=[report]), "go", store=place)
    store = open_store(place)
    (artifact,) = store.artifacts(done.turn_id)
    assert (artifact.tool, artifact.call_id, artifact.turn_id) == ("report", "call_1_1", done.turn_id)
    assert artifact.is_text and "hunter2!" not in artifact.preview
    whole = "line with hunter2!\n" * 20_000
    assert artifact.size_bytes == len(whole)
    read = store.artifact(artifact.artifact_id)
    assert read.text == whole.replace("hunter2!", "[redacted]")
    assert store.artifact(artifact.artifact_id[:15], done.turn_id, reveal=True).text == whole
    assert store.artifact(artifact.artifact_id[:15]).turn_id == done.turn_id
    with pytest.raises(ArtifactNotFound, match="no artifact 'sha256:00'"):
        store.artifact("sha256:00")


def test_cost_is_the_command_lines_report(place: Path) -> None:
    run_sync(Agent("any", scripted(["Done."])), "go", store=place)
    assert open_store(place).cost().total.calls == 1
    assert open_store(place).cost("agent", agent="any").model_dump(mode="json") == {
        **command(place, "cost", "--by", "agent", "--agent", "any", "--all"),
        "since": None,
    }


def test_events_come_in_pages_with_secrets_hidden_unless_they_are_to_be_shown(place: Path) -> None:
    run_sync(clerk(), "A17 is broken", store=place, key="t1")
    store = open_store(place)
    every = list(store.events("t1"))
    page = list(store.events("t1", limit=3))
    assert page == every[:3] and list(store.events("t1", after=page[-1].sequence)) == every[3:]
    shown = "".join(event.model_dump_json() for event in every)
    assert "hunter2" not in shown
    assert "hunter2" in "".join(event.model_dump_json() for event in store.events("t1", reveal=True))
    first = next(iter(store.events("t1")))
    assert first == every[0]


# --- the handle -------------------------------------------------------------------------------------------------------


async def test_a_handle_is_taken_wherever_a_store_is_named(place: Path) -> None:
    async with open_store(place) as store:
        waiting = await run(clerk(), "A17 is broken", store=store, key="t1")
        (approval,) = await store.approvals()
        await store.decide(approval.approval_id, Approve(), by="ann")
        assert (await resume(store, waiting.turn_id, [clerk()])).output == "Done."
        assert await cancel(store, waiting.turn_id) is False
        assert Path(store) == place


def test_waiting_on_a_running_loop_is_refused_with_the_line_to_write(place: Path) -> None:
    async def main(store: StoreHandle) -> None:
        store.approvals()

    async def follow(store: StoreHandle) -> None:
        list(store.events("t1", follow=True))

    for work in (main, follow):
        with pytest.raises(InvalidRequest, match="would block the running event loop") as told:
            asyncio.run(work(open_store(place)))
        assert "async with open_store(...) as store" in str(told.value.hint)


def test_a_file_that_has_to_be_there_is_not_made(place: Path) -> None:
    with pytest.raises(StoreProblem, match="there is no store"):
        open_store(place, must_exist=True)
    for wrong in (":memory:", 7):
        with pytest.raises(InvalidRequest):
            open_store(wrong)  # type: ignore[arg-type]
    with open_store(place) as store:
        assert store.turns() == [] and store.approvals() == []
    assert place.exists() and repr(store) == f"StoreHandle({str(place)!r})"


def test_only_who_may_decide_decides(place: Path) -> None:
    policy = GatePolicy(rules=(Rule(match="refund", decision="ask", approvers=("ann",)),))
    run_sync(clerk(policy=policy), "A17 is broken", store=place, key="t1")
    store = open_store(place)
    (approval,) = store.approvals()
    with pytest.raises(NotEntitled, match="'app:ben' may not decide"):
        store.decide(approval.approval_id, Approve(), by="ben")
    assert store.decide(approval.approval_id, Approve(), by="ann").decided_by == "app:ann"
