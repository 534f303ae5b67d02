"""Servers that are started here: what a call comes to when they behave, and when they do not."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kit.mcp_peers.asking import HERE, MakeOdd, Progress, ctx, named, names, reasons
from wakeful.contracts.errors import InvalidConfig, OutcomeUnknown, ToolReported
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.provenance import what_it_does
from wakeful.tools.mcp.servers import ServerLimits
from wakeful.tools.mcp.stdio import Tail, environment
from wakeful.tools.results import ToolOutput

ALL = {"*": "external_write"}


async def test_a_servers_tools_can_be_called(odd: MakeOdd) -> None:
    offer = await odd(classes=ALL).source.offer()
    assert names(offer) == ["mcp.odd/reads", "mcp.odd/sets", "mcp.odd/pays", "mcp.odd/silent"]
    assert offer.withheld == ()
    assert await named(offer, "mcp.odd/reads").invoke(ctx(), {"text": "hello"}) == "reads: hello"


async def test_hints_become_what_the_gate_asks(odd: MakeOdd) -> None:
    offer = await odd(classes={"p*": "secrets", "*": "external_write"}).source.offer()
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    shared = {"input_schema": schema, "timeout": 300.0, "reads_private": True, "external": True,
              "categories": ("mcp", "mcp.odd"), "runtime_owner": "mcp_server"}  # fmt: skip
    assert [tool.declaration for tool in offer.tools] == [
        ToolDeclaration(
            name="mcp.odd/reads", description="Reads.", effect="pure", changes_state=False, leaves_machine=True,
            permission_class="external_write", capabilities=("read", "network"), **shared,
        ),
        ToolDeclaration(
            name="mcp.odd/sets", description="The tool sets.", effect="keyed", changes_state=True, parallel_safe=False,
            permission_class="external_write", capabilities=("write", "custom:destructive"), untrusted=False, **shared,
        ),
        ToolDeclaration(
            name="mcp.odd/pays", description="The tool pays.", effect="irreversible", changes_state=True,
            parallel_safe=False, leaves_machine=True, permission_class="secrets",
            capabilities=("write", "network", "custom:destructive"), **shared,
        ),
        ToolDeclaration(
            name="mcp.odd/silent", description="The tool silent.", effect="irreversible", changes_state=True,
            parallel_safe=False, leaves_machine=True, permission_class="external_write",
            capabilities=("write", "network", "custom:destructive"), **shared,
        ),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "untrusted"),
    [
        ({}, {"reads": True, "sets": False, "pays": True}),
        ({"untrusted": True}, {"reads": True, "sets": True, "pays": True}),
        ({"untrusted": False}, {"reads": False, "sets": False, "pays": False}),
        ({"untrusted": ["s*"]}, {"reads": True, "sets": True, "pays": True}),
    ],
)
async def test_a_closed_world_is_believed_and_the_owner_has_the_last_word(
    odd: MakeOdd, options: dict[str, Any], untrusted: dict[str, bool]
) -> None:
    offer = await odd(classes=ALL, **options).source.offer()
    found = {tool.name.rpartition("/")[2]: what_it_does(tool.declaration) for tool in offer.tools}
    assert {name: found[name].untrusted_result for name in untrusted} == untrusted
    assert {name: found[name].leaves_machine for name in untrusted} == {"reads": True, "sets": False, "pays": True}


async def test_free_text_is_named_by_the_owner_and_a_name_that_no_tool_has_is_told(odd: MakeOdd) -> None:
    offer = await odd(classes=ALL, content={"p*": ["text"], "reads": ["txet"]}).source.offer()
    assert {tool.name: tool.declaration.content for tool in offer.tools if tool.declaration.content} == {
        "mcp.odd/pays": ("text",)
    }
    assert "content names 'txet' for 'reads'" in reasons(offer)["mcp.odd/reads"].reason
    with pytest.raises(InvalidConfig, match=r"content\['p\*'\] is 'text'"):
        odd(content={"p*": "text"})


async def test_what_does_not_declare_itself_read_only_is_offered_and_asks(odd: MakeOdd) -> None:
    offer = await odd(classes={"sets": "workspace_write"}).source.offer()
    assert {tool.name: tool.declaration.permission for tool in offer.tools} == {
        "mcp.odd/reads": "network",
        "mcp.odd/sets": "workspace_write",
        "mcp.odd/pays": "external_write",
        "mcp.odd/silent": "external_write",
    }
    assert offer.withheld == ()


async def test_a_tool_that_contradicts_itself_is_not_believed(odd: MakeOdd) -> None:
    (tool,) = (await odd("liar").source.offer()).tools
    assert (tool.declaration.permission, tool.declaration.effect) == ("external_write", "irreversible")


async def test_names_are_made_fit_or_withheld(odd: MakeOdd) -> None:
    offer = await odd("names").source.offer()
    assert names(offer) == ["mcp.odd/fine", "mcp.odd/_1st", "mcp.odd/a_b"]
    assert await named(offer, "mcp.odd/a_b").invoke(ctx(), {"text": "x"}) == "a/b: x"
    why = [each.reason for each in offer.withheld]
    assert why.count("2 tools of this server have that name") == 2
    assert sum("cannot be a tool's name" in reason for reason in why) == 4


async def test_a_schema_that_is_none_or_too_large_withholds_the_tool(odd: MakeOdd) -> None:
    offer = await odd("schemas").source.offer()
    assert names(offer) == ["mcp.odd/fine"]
    assert "not a JSON Schema" in reasons(offer)["mcp.odd/broken"].reason
    assert "larger than" in reasons(offer)["mcp.odd/large"].reason


@pytest.mark.parametrize(("mode", "tools"), [("endless", 100), ("same_cursor", 2)])
async def test_a_list_without_an_end_is_cut_and_said_to_be(odd: MakeOdd, mode: str, tools: int) -> None:
    offer = await odd(mode, limits=ServerLimits(tools=100, pages=50)).source.offer()
    assert len(offer.tools) + sum("have that name" in each.reason for each in offer.withheld) == tools
    assert "does not end" in reasons(offer)["mcp.odd/*"].reason


# --- results ----------------------------------------------------------------------------------------------------------


async def test_a_tool_that_says_it_failed_has_failed(odd: MakeOdd) -> None:
    tool = named(await odd().source.offer(), "mcp.odd/reads")
    with pytest.raises(ToolReported) as failed:
        await tool.invoke(ctx(), {"text": "fail"})
    error = failed.value.error
    assert (error.kind, error.message) == ("tool_error", "it broke")
    assert error.details == {"structured_content": {"why": "no reason"}}


async def test_structured_content_is_kept_beside_what_the_model_reads(odd: MakeOdd) -> None:
    tool = named(await odd().source.offer(), "mcp.odd/reads")
    result = await tool.invoke(ctx(), {"text": "structured"})
    assert result == ToolOutput('{"cents":4200}', metadata={"structured_content": {"cents": 4200}})


async def test_a_refusal_of_the_server_keeps_its_number(odd: MakeOdd) -> None:
    tool = named(await odd(classes=ALL).source.offer(), "mcp.odd/pays")
    with pytest.raises(ToolReported) as failed:
        await tool.invoke(ctx(), {"text": "refuse"})
    assert (failed.value.error.kind, failed.value.error.details) == ("invalid_parameters", {"code": -32602})


async def test_a_server_cannot_pretend_that_the_connection_ended(odd: MakeOdd) -> None:
    tool = named(await odd(classes=ALL).source.offer(), "mcp.odd/pays")
    with pytest.raises(ToolReported) as failed:
        await tool.invoke(ctx(), {"text": "closed"})
    assert failed.value.error.details == {"code": -32000}


async def test_a_huge_result_is_cut(odd: MakeOdd) -> None:
    tool = named(await odd("huge").source.offer(), "mcp.odd/reads")
    result = await tool.invoke(ctx(), {})
    assert isinstance(result, ToolOutput)
    assert result.truncated
    assert sum(len(part.text) for part in result.content) < 4_300_000
    assert "characters of text" in result.content[-1].text


async def test_a_result_of_too_many_parts_is_cut(odd: MakeOdd) -> None:
    tool = named(await odd("many").source.offer(), "mcp.odd/reads")
    result = await tool.invoke(ctx(), {})
    assert result.truncated
    assert len(result.content) == 101
    assert result.content[-1].text == "[left out: 400 more parts]"


# --- progress, cancelling, deadlines ----------------------------------------------------------------------------------


async def test_progress_is_always_asked_for_and_a_flood_of_it_is_drained(odd: MakeOdd) -> None:
    peer = odd("flood")
    told: list[Progress] = []
    tool = named(await peer.source.offer(), "mcp.odd/reads")
    assert await tool.invoke(ctx(told), {"text": "x"}) == "reads: x"
    assert [done for _, done, *_ in told] == [float(each) for each in range(3_000)]
    assert await tool.invoke(ctx(), {"text": "and nobody looks"}) == "reads: and nobody looks"
    calls = [message for message in peer.heard() if message["method"] == "tools/call"]
    assert all("progressToken" in call["params"]["_meta"] for call in calls) and len(calls) == 2


async def test_progress_that_makes_no_sense_is_passed_over(odd: MakeOdd) -> None:
    told: list[Progress] = []
    tool = named(await odd("odd_progress").source.offer(), "mcp.odd/reads")
    assert await tool.invoke(ctx(told), {"text": "x"}) == "reads: x"
    assert told == [(("half " + "x" * 5000)[:500], 1.0, 2.0, "")]


async def test_a_cancelled_call_tells_the_server_and_the_next_one_works(odd: MakeOdd) -> None:
    peer = odd("hang_call")
    tool = named(await peer.source.offer(), "mcp.odd/reads")
    running = tool.start(ctx(), {"text": "x"})
    await until(lambda: "tools/call" in peer.methods())
    running.result.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.result
    await until(lambda: "notifications/cancelled" in peer.methods())
    asked = next(message for message in peer.heard() if message.get("method") == "tools/call")
    told = next(message for message in peer.heard() if message.get("method") == "notifications/cancelled")
    assert told["params"]["requestId"] == asked["id"]
    assert names(await peer.source.offer())


async def test_a_server_that_is_silent_in_a_call_is_given_up_and_told_so(odd: MakeOdd) -> None:
    peer = odd("hang_call", classes=ALL, timeout=0.3)
    offer = await peer.source.offer()
    with pytest.raises(ToolReported) as failed:
        await named(offer, "mcp.odd/reads").invoke(ctx(), {})
    assert failed.value.error.kind == "timeout"
    assert failed.value.error.retryable
    with pytest.raises(OutcomeUnknown, match="did not answer within"):
        await named(offer, "mcp.odd/pays").invoke(ctx(), {})
    await until(lambda: peer.methods().count("notifications/cancelled") == 2)


async def test_the_deadline_of_the_call_holds(odd: MakeOdd) -> None:
    tool = named(await odd("hang_call").source.offer(), "mcp.odd/reads")
    with pytest.raises(ToolReported) as failed:
        await tool.invoke(ctx(deadline=datetime.now(UTC) + timedelta(seconds=0.3)), {})
    assert failed.value.error.kind == "timeout"


# --- servers that misbehave -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["hang_init", "silent", "hang_list"])
async def test_a_server_that_hangs_at_the_start_is_unavailable(odd: MakeOdd, mode: str) -> None:
    offer = await odd(mode, limits=ServerLimits(connect_seconds=1.0, list_seconds=1.0)).source.offer()
    assert offer.tools == ()
    (withheld,) = offer.withheld
    assert (withheld.name, withheld.status) == ("mcp.odd/*", "unavailable")
    assert "did not answer within 1 s" in withheld.reason


async def test_a_server_that_does_not_start_is_quoted_and_no_more_than_that(odd: MakeOdd) -> None:
    (withheld,) = (await odd("no_start").source.offer()).withheld
    assert "its last words: " in withheld.reason
    assert withheld.reason.endswith("the end")
    assert len(withheld.reason) < 1_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"command": ["no-such-program-anywhere"]}, "there is no program 'no-such-program-anywhere' on the PATH"),
        ({"command": ["./not/here"]}, "cannot start ./not/here"),
        ({"cwd": "not-a-folder"}, "its folder not-a-folder is not there"),
    ],
)
async def test_a_server_that_cannot_be_started_says_why(odd: MakeOdd, options: dict[str, object], words: str) -> None:
    (withheld,) = (await odd(**options).source.offer()).withheld
    assert words in withheld.reason


async def test_tools_of_a_server_that_is_down_are_unavailable_and_not_missing(odd: MakeOdd) -> None:
    first = odd(classes=ALL)
    await first.source.offer()
    offer = await odd("no_start", classes=ALL).source.offer()
    assert {each.name for each in offer.withheld} == {f"mcp.odd/{name}" for name in ("reads", "sets", "pays", "silent")}
    assert {each.status for each in offer.withheld} == {"unavailable"}


async def test_a_server_that_dies_in_a_call_leaves_it_unknown_unless_it_only_reads(odd: MakeOdd) -> None:
    peer = odd("dies", classes=ALL)
    offer = await peer.source.offer()
    with pytest.raises(OutcomeUnknown, match="out of memory"):
        await named(offer, "mcp.odd/pays").invoke(ctx(), {})
    with pytest.raises(ToolReported) as failed:
        await named(offer, "mcp.odd/reads").invoke(ctx(), {})
    assert failed.value.error.kind == "server_lost"
    assert peer.methods().count("initialize") == 2  # the second call made a connection of its own
    assert peer.methods().count("tools/call") == 2


async def test_what_a_server_was_given_is_not_repeated_in_an_error(odd: MakeOdd) -> None:
    tool = named(await odd("dies", env={"TOKEN": "tok-secret"}).source.offer(), "mcp.odd/reads")
    with pytest.raises(ToolReported, match=r"out of memory, with \[redacted\]"):
        await tool.invoke(ctx(), {})


async def test_a_server_that_keeps_failing_is_left_alone_for_a_while(odd: MakeOdd) -> None:
    source = odd("no_start", limits=ServerLimits(retry_seconds=(0.0, 900.0))).source
    reasons_given = [(await source.offer()).withheld[0].reason for _ in range(3)]
    assert ["tried again in" in reason for reason in reasons_given] == [False, False, True]
    assert "its last words" in reasons_given[2]


async def test_answers_for_nobody_and_answers_given_twice_are_passed_over(odd: MakeOdd) -> None:
    tool = named(await odd("lying_ids").source.offer(), "mcp.odd/reads")
    for _ in range(3):
        assert await tool.invoke(ctx(), {}) == "the true one"


async def test_lines_that_are_no_messages_are_passed_over(odd: MakeOdd) -> None:
    tool = named(await odd("garbage").source.offer(), "mcp.odd/reads")
    assert await tool.invoke(ctx(), {"text": "x"}) == "reads: x"


@pytest.mark.parametrize(
    ("mode", "words"), [("only_garbage", "lines that are not messages"), ("no_newline", "a message of more than")]
)
async def test_a_server_that_says_nothing_but_nonsense_is_given_up(odd: MakeOdd, mode: str, words: str) -> None:
    tool = named(await odd(mode, limits=ServerLimits(message_bytes=1_000_000)).source.offer(), "mcp.odd/reads")
    with pytest.raises(ToolReported, match=words):
        await tool.invoke(ctx(), {})


# --- processes --------------------------------------------------------------------------------------------------------


def test_a_server_gets_a_bare_environment_and_what_it_is_given() -> None:
    own = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "OPENAI_API_KEY": "k", "LD_PRELOAD": "x", "PYTHONPATH": "y"}
    bin_folder = str(Path("/bin").resolve())
    assert environment({"TOKEN": "t"}, own) == {"PATH": bin_folder, "HOME": "/h", "LC_ALL": "C", "TOKEN": "t"}


async def test_the_servers_own_environment_holds_no_key(odd: MakeOdd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    tool = named(await odd(env={"GIVEN": "yes"}).source.offer(), "mcp.odd/reads")
    seen = json.loads(await tool.invoke(ctx(), {"text": "environment"}))
    assert seen["GIVEN"] == "yes"
    assert "SOME_API_KEY" not in seen


async def test_sources_of_the_same_server_share_one_process_and_close_it(odd: MakeOdd) -> None:
    one, other = odd("family"), odd("family")
    await asyncio.gather(one.source.offer(), other.source.offer())
    assert one.methods().count("initialize") == 1
    server, hidden = one.heard()[0]["pids"]
    await one.source.close()
    assert is_alive(server)
    await other.source.close()
    await until(lambda: not is_alive(server) and not is_alive(hidden))
    assert names(await one.source.offer())  # and it can be used again


async def test_an_idle_server_stays_connected_for_the_next_run(odd: MakeOdd) -> None:
    peer = odd("family", limits=ServerLimits(idle_seconds=900.0))
    await peer.source.offer()
    (server, _) = peer.heard()[0]["pids"]
    await peer.source.close()
    await peer.source.offer()
    assert is_alive(server) and peer.methods().count("initialize") == 1, "one process serves both"
    await peer.source.close()


async def test_an_idle_server_is_closed_when_its_time_is_over(odd: MakeOdd) -> None:
    peer = odd("family", limits=ServerLimits(idle_seconds=0.01))
    await peer.source.offer()
    server, hidden = peer.heard()[0]["pids"]
    await peer.source.close()
    await until(lambda: not is_alive(server) and not is_alive(hidden))
    assert names(await peer.source.offer()), "the next run starts it again"


async def test_a_server_that_does_not_want_to_end_is_ended(odd: MakeOdd) -> None:
    peer = odd("stubborn")
    await peer.source.offer()
    await peer.source.close()
    assert [task for task in asyncio.all_tasks() if "wakeful-mcp" in task.get_name()] == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_server_and_what_it_started_end_with_the_program(tmp_path: Path, how: signal.Signals) -> None:
    heard = tmp_path / "heard"
    program = family(heard, 'print("ready", flush=True)', "await asyncio.sleep(600)")
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
    pids = json.loads(heard.read_text().splitlines()[0])["pids"]
    assert all(map(is_alive, pids))
    process.send_signal(how)
    await asyncio.to_thread(process.wait)
    process.stdout.close()
    await until(lambda: not any(map(is_alive, pids)))


async def test_a_loop_that_ends_without_closing_leaves_no_server(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    program = family(heard)
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "Warning" not in done.stderr and "Traceback" not in done.stderr, done.stderr
    pids = json.loads(heard.read_text().splitlines()[0])["pids"]
    await until(lambda: not any(map(is_alive, pids)))


def test_of_what_a_server_complains_about_the_end_is_kept() -> None:
    tail = Tail(most=10)
    for piece in (b"abc", b"defghijklmnop", b"", b"qr\xff"):
        tail.add(piece)
    assert tail.text() == "jklmnopqr\ufffd"


def family(heard: Path, *more: str) -> str:
    """A program with a server that has a child of its own, and what it does then."""
    command = [sys.executable, "-I", "-S", str(HERE / "odd_server.py"), "family", str(heard)]
    lines = [
        "import asyncio",
        "from wakeful import from_mcp",
        "async def main():",
        f"    source = from_mcp('odd', command={command!r}, pins={str(heard.with_name('pins.json'))!r})",
        "    await source.offer()",
        *(f"    {line}" for line in more),
        "asyncio.run(main())",
    ]
    return "\n".join(lines)


def is_alive(pid: int) -> bool:
    """A process that is a zombie is over, too."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


async def until(happened: Callable[[], bool]) -> None:
    """Wait for it; the test's own time limit is the end of patience."""
    while not happened():  # noqa: ASYNC110 - it happens in another process
        await asyncio.sleep(0.01)
