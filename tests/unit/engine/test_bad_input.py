"""Whatever a model or a tool does wrong is a normal result for that call alone: siblings go on, and the turn ends."""

import asyncio
import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kit.runs.engine_runs import calls, check_ends, of_kind, until_known
from wakeful import Agent, OutcomeUnknown, RunContext, RunResult, Text, ToolRetry, run, tool
from wakeful.contracts.content import Thinking
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.events import AssistantRecorded, ModelFailed, ToolFailed, ToolProgress, ToolResult
from wakeful.contracts.models import Reply
from wakeful.ports import ModelRequest
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.testing.validating_store import ValidatingStore


@tool(effect="pure")
async def sibling() -> str:
    return "fine"


async def ran_beside(bad: Any, arguments: Any = None) -> RunResult[Any]:
    """The bad call between two good ones; every fact is held to the published schema."""
    script = scripted([calls("sibling", (bad.name, arguments or {}), "sibling"), "done"])
    result = await run(Agent("any", script, tools=[bad, sibling]), "go", store=ValidatingStore(MemoryStore()))
    assert result.output == "done"
    check_ends(result.facts())
    first, _, last = result.calls()
    assert (first.status, first.result, last.status, last.result) == ("success", "fine", "success", "fine")
    json.loads(result.to_json())
    return result


def raising(error: Callable[[], BaseException], *, is_async: bool) -> Any:
    if is_async:

        @tool(name="bad", effect="pure")
        async def bad() -> str:
            raise error()

        return bad

    @tool(name="bad", effect="pure")
    def bad_sync() -> str:
        raise error()

    return bad_sync


class CannotSpeak(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


class WithDetails(Exception):
    details = {"object": object(), "number": float("nan"), "text": "\ud800", "long": "x" * 100_000}
    recovery_hint = "look \ud800 again"


ERRORS: dict[str, Callable[[], BaseException]] = {
    "an ordinary error": lambda: ValueError("no"),
    "without words": CannotSpeak,
    "half a surrogate pair": lambda: ValueError("\ud800 \x00"),
    "a very long message": lambda: ValueError("x" * 1_000_000),
    "details of any kind": lambda: WithDetails("no"),
    "an exit": lambda: SystemExit(3),
    "a cancel of its own": asyncio.CancelledError,
    "a retry with odd words": lambda: ToolRetry("\ud800" + "x" * 100_000),
    "an unknown outcome with odd words": lambda: OutcomeUnknown("\ud800" + "x" * 100_000),
    "a group": lambda: ExceptionGroup("several", [ValueError("one"), TypeError("two")]),
}
ONLY_IN_A_THREAD: dict[str, Callable[[], BaseException]] = {
    "Ctrl-C": KeyboardInterrupt,
    "a generator's end": GeneratorExit,
    "an iterator's end": StopIteration,
}


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("what", ERRORS)
async def test_a_tool_that_raises_fails_alone(what: str, is_async: bool) -> None:
    result = await ran_beside(raising(ERRORS[what], is_async=is_async))
    (failed,) = of_kind(result, ToolFailed)
    assert failed.item.is_error
    assert len(failed.item.text) < 10_000, "what the model reads is bounded"


@pytest.mark.parametrize("what", ONLY_IN_A_THREAD)
async def test_a_tool_cannot_end_the_process_from_its_thread(what: str) -> None:
    result = await ran_beside(raising(ONLY_IN_A_THREAD[what], is_async=False))
    assert len(of_kind(result, ToolFailed)) == 1


cycle: list[Any] = []
cycle.append(cycle)


class CannotBeShown:
    def __repr__(self) -> str:
        raise RuntimeError("no")


RESULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: None, "(no output)"),
    "half a surrogate pair": (lambda: "a\ud800b", "a\ufffdb"),
    "a NUL": (lambda: "a\x00b", "a\ufffdb"),
    "not a number": (lambda: [float("nan"), float("inf")], '["NaN","Infinity"]'),
    "binary": (lambda: b"\xff\x00\xfe" * 10, "30 bytes of binary data"),
    "a generator": (lambda: (number for number in range(3)), "[0,1,2]"),
    "a set": (lambda: {1}, "[1]"),
    "a large number": (lambda: 10**400, "1000"),
}
REFUSED: dict[str, Callable[[], Any]] = {
    "a cycle": lambda: cycle,
    "an object": CannotBeShown,
    "a lambda": lambda: ODD_FUNCTION,
}


def ODD_FUNCTION() -> None:  # noqa: N802
    """Something that no JSON can hold."""


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
@pytest.mark.parametrize("what", RESULTS)
async def test_a_tool_may_return_anything_that_has_words(what: str, is_async: bool) -> None:
    value, shown = RESULTS[what]
    result = await ran_beside(returning(value, is_async=is_async))
    assert shown in result.calls("bad")[0].result


@pytest.mark.parametrize("what", REFUSED)
async def test_a_result_without_words_is_one_failed_call(what: str) -> None:
    result = await ran_beside(returning(REFUSED[what], is_async=True))
    (failed,) = of_kind(result, ToolFailed)
    assert failed.tool_error.kind == "invalid_result"


def returning(value: Callable[[], Any], *, is_async: bool) -> Any:
    if is_async:

        @tool(name="bad", effect="pure")
        async def bad() -> Any:
            return value()

        return bad

    @tool(name="bad", effect="pure")
    def bad_sync() -> Any:
        return value()

    return bad_sync


@pytest.mark.parametrize("kind", ["text", "binary"])
async def test_a_hundred_megabytes_are_kept_whole_and_shown_in_part(kind: str) -> None:
    size = 100_000_000
    value: Any = "x" * size if kind == "text" else b"\x00" * size
    result = await ran_beside(returning(lambda: value, is_async=True))
    (event,) = [event for event in of_kind(result, ToolResult) if event.tool_name == "bad"]
    assert event.size_bytes >= size
    assert len(event.model_dump_json()) < 65_536, "no event outgrows its limit"
    if kind == "text":
        assert event.truncated and event.result_ref is not None and event.result_ref.size == size


async def test_a_tool_that_prints_binary_disturbs_nothing(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    @tool(effect="pure")
    def bad() -> str:
        os.write(1, b"\xff\xfe\x00\x1b[2J" * 100)
        os.write(2, b"\x80" * 100)
        return "printed"

    result = await ran_beside(bad)
    assert result.calls("bad")[0].result == "printed"
    assert b"\xff\xfe" in capfdbinary.readouterr().out


# --- what a model may write ------------------------------------------------------------------------------------------


@tool(effect="pure")
def shows(x: Any = None) -> str:
    return ascii(x)[:40]


@pytest.mark.spec("CTL-META-14", "LOOP-STEP-18", "LOOP-STEP-22")
@pytest.mark.parametrize(
    ("arguments", "kind", "category"),
    [
        ("not JSON at all", "invalid_arguments", "invalid_arguments"),
        ('{"x": ', "invalid_arguments", "invalid_arguments"),
        ("[1, 2]", "invalid_arguments", "invalid_arguments"),
        ('"words"', "invalid_arguments", "invalid_arguments"),
        ("{" * 100_000, "invalid_arguments", "invalid_arguments"),
        ('{"x": NaN}', "invalid_arguments", "invalid_arguments"),
        ({"number": "five"}, "invalid_parameters", "schema_validation_failed"),
        ({}, "missing_required_parameters", "schema_validation_failed"),
        ({"number": 1, "more": 2}, "invalid_parameters", "schema_validation_failed"),
    ],
)
async def test_malformed_arguments_are_one_calls_error(arguments: Any, kind: str, category: str) -> None:
    ran: list[int] = []

    @tool(effect="irreversible")
    async def bad(number: int) -> str:
        ran.append(number)
        return "ran"

    result = await ran_beside(bad, arguments)
    (failed,) = of_kind(result, ToolFailed)
    assert (failed.tool_error.kind, failed.error_category, failed.effects) == (kind, category, "none")
    assert failed.metadata.status == "error" and failed.metadata.execution_time_ms == 0
    assert not ran, "validated before anything runs"
    assert not result.unknown


async def test_an_unknown_tool_is_one_calls_error_that_names_what_there_is() -> None:
    script = scripted([calls("sibling", "siblin", "sibling"), "done"])
    result = await run(Agent("any", script, tools=[sibling]), "go")
    good, bad, other = result.calls()
    assert (good.status, bad.status, other.status) == ("success", "error", "success")
    told = json.loads(result.history()[3].text)
    assert told["kind"] == "tool_not_found" and "'sibling'" in told["hint"]
    check_ends(result.facts())


@pytest.mark.spec("LOOP-STEP-22")
async def test_calls_are_never_scraped_from_text() -> None:
    words = 'sibling() {"name": "sibling", "arguments": {}} <tool_call>sibling</tool_call>'
    result = await run(Agent("any", scripted([words]), tools=[sibling]), "go")
    assert result.output == words
    assert result.calls() == [] and result.tool_calls == 0


def made(**fields: Any) -> CallPart:
    """A call as a careless provider makes it: nothing about it was checked."""
    defaults = {"type": "call", "call_id": "c1", "name": "shows", "arguments": {}, "opaque": {}}
    empty = {"arguments_ref": None, "raw_arguments": None}
    return CallPart.model_construct(**{**defaults, **empty, **fields})


REPLIES: dict[str, list[Any]] = {
    "half a surrogate pair in the arguments": [made(arguments={"x": "\ud800"})],
    "a key of that kind": [made(arguments={"\ud800": 1})],
    "NaN among the arguments": [made(arguments={"x": float("nan")})],
    "five megabytes of arguments": [made(arguments={"x": "y" * 5_000_000})],
    "many arguments": [made(arguments={"x": {f"k{number}": number for number in range(20_000)}})],
    "raw words that cannot be kept": [made(arguments=None, raw_arguments="{\ud800" * 100_000)],
    "a name that cannot be kept": [made(name="\ud800")],
    "a name of a megabyte": [made(name="n" * 1_000_000)],
    "no name": [made(name="")],
    "no id": [made(call_id="")],
    "an id that cannot be kept": [made(call_id="\ud800")],
    "an id of a megabyte": [made(call_id="i" * 1_000_000)],
    "an id used twice": [made(call_id="c2")],
    "an id that looks like ours": [made(call_id="tool-call-1-2"), made(call_id="")],
    "text that cannot be kept": [Text("hi \ud800 \x00"), made()],
    "three megabytes of text": [Text("h" * 3_000_000), made()],
    "much thinking": [Thinking(text="t" * 200_000, provider="x", opaque={"signature": "s" * 200_000}), made()],
}


@pytest.mark.parametrize("what", REPLIES)
async def test_whatever_a_reply_holds_its_calls_are_answered(what: str) -> None:
    reply = Reply.model_construct(
        item=AssistantItem.model_construct(parts=(*REPLIES[what], made(call_id="c2", name="sibling")), provider="x"),
        stop_reason="tool_calls",
    )

    def answer(request: ModelRequest) -> Any:
        if request.answered == 0:
            return reply
        assert [item.role for item in request.history][:2] == ["user", "assistant"]
        return "done"

    store = ValidatingStore(MemoryStore())
    result = await run(Agent("any", scripted(answer), tools=[shows, sibling]), "go", store=store)
    assert result.output == "done"
    assert result.calls()[-1].result == "fine"
    check_ends(result.facts())
    ids = [part.call_id for part in of_kind(result, AssistantRecorded)[0].item.calls]
    assert len(set(ids)) == len(ids) and all(ids)
    json.loads(result.to_json())


async def test_thinking_that_is_too_long_for_an_event_comes_back_to_the_model_untouched() -> None:
    thought = Thinking(text="t" * 200_000, provider="x", opaque={"signature": "s" * 200_000})
    seen: list[Any] = []

    def answer(request: ModelRequest) -> Any:
        seen.append(list(request.history)[-1 if request.answered == 0 else 1].parts[0])
        if request.answered == 0:
            return Reply(item=AssistantItem(parts=(thought, made(name="sibling")), provider="x"))
        return "done"

    await run(Agent("any", scripted(answer), tools=[sibling]), "go")
    assert seen[1] == thought


async def test_a_reply_that_no_log_can_hold_is_a_lost_attempt() -> None:
    many = [made(call_id=f"{number}-{'z' * 100}", arguments={"x": "a" * 200}) for number in range(256)]
    reply = Reply.model_construct(item=AssistantItem.model_construct(parts=tuple(many), provider="x"))
    result = await run(Agent("any", scripted(lambda: reply), tools=[shows]), "go")
    assert (result.status, result.stop_reason) == ("failed", "provider_error")
    assert of_kind(result, ModelFailed)[0].failure_kind == "invalid_response"


@pytest.mark.parametrize(
    "broken",
    [
        lambda request: (_ for _ in ()).throw(KeyError("\ud800")),
        lambda request: {"text": "x", "metadata": {"odd": object()}},
        lambda request: 5,
    ],
    ids=["raises", "says odd things about itself", "gives no step"],
)
async def test_a_provider_that_breaks_is_a_lost_attempt_and_not_a_lost_turn(broken: Any) -> None:
    result = await run(Agent("any", scripted(broken)), "go", store=ValidatingStore(MemoryStore()))
    assert (result.status, result.stop_reason) == ("failed", "provider_error")
    check_ends(result.facts())


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
async def test_odd_progress_is_shown_as_far_as_it_has_words(is_async: bool) -> None:
    def note(ctx: RunContext[None]) -> None:
        ctx.progress("\ud800" + "x" * 10_000, done=float("nan"), total=float("inf"))

    @tool(name="bad", effect="pure")
    async def bad(ctx: RunContext[None]) -> str:
        note(ctx)
        return "ok"

    @tool(name="bad", effect="pure")
    def bad_sync(ctx: RunContext[None]) -> str:
        note(ctx)
        return "ok"

    result = await ran_beside(bad if is_async else bad_sync)
    (progress,) = of_kind(result, ToolProgress)
    assert (progress.progress, progress.total) == (None, None) and progress.message.startswith("\ufffdx")


# --- tools that do not stop ------------------------------------------------------------------------------------------


async def test_a_tool_that_hangs_runs_out_of_its_time_and_its_siblings_do_not() -> None:
    @tool(effect="pure", timeout=0.02)
    async def bad() -> str:
        await asyncio.sleep(60)
        return "never"

    result = await ran_beside(bad)
    assert result.calls("bad")[0].status == "timed_out"


async def test_a_tool_that_swallows_its_cancellation_and_answers_is_believed() -> None:
    @tool(effect="irreversible", timeout=0.02)
    async def bad() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
        return "finished all the same"

    result = await ran_beside(bad)
    assert result.calls("bad")[0].result == "finished all the same"
    assert not result.unknown


async def test_the_late_answer_of_a_thread_closes_the_unknown() -> None:
    go_on, answered = threading.Event(), threading.Event()

    @tool(effect="irreversible", timeout=0.02)
    def bad(ctx: RunContext[None]) -> str:
        go_on.wait(30)
        answered.set()
        return "it was sent after all"

    store = MemoryStore()
    script = scripted([calls("bad"), "done"])
    result = await run(Agent("any", script, tools=[bad]), "go", store=store)
    assert [call.tool for call in result.unknown] == ["bad"]
    assert [row.tool for row in await store.unknown()] == ["bad"]
    go_on.set()
    await until_known(store)
    (agent_id,) = await store.agents()
    resolved = (await store.read(agent_id))[-1].fact.event
    assert resolved.kind == "unknown.resolved"
    assert (resolved.happened, resolved.result, resolved.source) == (True, "it was sent after all", "late_answer")


def test_a_process_whose_tool_hangs_in_a_thread_ends_promptly() -> None:
    program = """
        import threading
        from wakeful import Agent, run_sync, tool
        from wakeful.testing import scripted

        @tool(effect="irreversible", timeout=0.05)
        def hang() -> str:
            threading.Event().wait()
            return "never"

        script = scripted([{"calls": [{"name": "hang"}]}, "done"])
        result = run_sync(Agent("any", script, tools=[hang]), "go")
        print(result.output, [call.tool for call in result.unknown])
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=240, check=True
    )
    assert ended.stdout.strip() == "done ['hang']"
