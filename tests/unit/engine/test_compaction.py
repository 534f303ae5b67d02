"""Conversations that grow too long: when they are folded, what the model is shown then, and what may not be lost."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from kit.runs.long_runs import WINDOW, Asked, events_of, has_whole_pairs, look, looking
from wakeful import Agent, Approve, Budget, CompactionPolicy, RunContext, run, tool
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.budgets import INTERACTIVE, MAX_HISTORY_TOKENS
from wakeful.contracts.content import Image, Text
from wakeful.contracts.conversation import AssistantItem, CallPart, ToolItem, UserItem
from wakeful.contracts.envelope import published
from wakeful.contracts.events import (
    CompactionCompleted,
    CompactionFailed,
    CompactionStarted,
    ContextResolved,
    LimitChanged,
    ModelRequested,
    ToolResult,
    TurnStarted,
)
from wakeful.decisions.compaction import context_tokens, cut_of, kept_by
from wakeful.decisions.compaction_outcome import settled_fold
from wakeful.decisions.evolve.facts import evolve
from wakeful.decisions.level_conversation import LevelConversation, MessagePlace, PreservedRefs
from wakeful.decisions.levels import Level, SummaryRole
from wakeful.decisions.step import EndLevel
from wakeful.decisions.summary import MAX_LISTED, MAX_SAID_BYTES, differences, held_by, named, summary_item
from wakeful.engine.state_loader import fold
from wakeful.ports import ModelRequest, Store
from wakeful.service.queries.replay import replay_turn
from wakeful.testing import scripted
from wakeful.tools.results import ToolOutput


def clerk(asked: Asked, answer: Any, **options: Any) -> Agent[Any, str]:
    model = asked.model(answer, window=options.pop("window", WINDOW), raw=options.pop("raw", False))
    return Agent("clerk", model, "Serve.", tools=options.pop("tools", [look]), **options)


async def identical(store: Store, turn_id: str) -> bool:
    row = await store.turn(turn_id)
    assert row is not None
    report = await replay_turn(store, row)
    assert report.identical, report.divergence
    return True


async def talked(store: Store, agent: Agent[Any, str], turns: int, words: int = 200) -> list[Any]:
    """A thread of so many turns, each with a message of so many words."""
    return [
        await run(agent, f"message {number} " + "word " * words, store=store, thread="t") for number in range(turns)
    ]


# --- the boundary and its events -------------------------------------------------------------------------------------


@pytest.mark.spec("STD-COMP-01", "STD-COMP-02", "STD-COMP-03", "STD-COMP-09")
async def test_a_conversation_that_grows_too_long_is_folded_and_the_run_goes_on(store: Store) -> None:
    asked = Asked()
    result = await run(clerk(asked, looking(12)), "find it", store=store)
    assert (result.status, result.output) == ("completed", "the end")
    begun, ended = events_of(result, CompactionStarted), events_of(result, CompactionCompleted, CompactionFailed)
    assert begun and [event.compaction_id for event in begun] == [event.compaction_id for event in ended]
    assert len({event.compaction_id for event in begun}) == len(begun)
    assert {event.trigger for event in (*begun, *ended)} == {"token_pressure"}
    for number, event in enumerate(ended, 1):
        assert isinstance(event, CompactionCompleted)
        assert event.summary_preview == f"SUMMARY {number}" and len(event.summary_preview) <= 500
        assert event.tokens_after < event.tokens_before and event.tokens_before > 0.8 * WINDOW
        assert event.model_ref == "scripted:inline" and event.duration_ms >= 0
    block = {"compaction_id", "trigger", "affected_turn_ids", "tokens_before"}
    assert block <= set(begun[0].model_dump())
    assert block | {
        "summary_preview",
        "summary_ref",
        "continuation_ref",
        "tokens_after",
        "model_ref",
        "duration_ms",
    } <= (set(ended[0].model_dump()))
    for seen in asked.of(None):
        assert len(seen.text) < WINDOW * 3 and has_whole_pairs(seen.items)
    assert await identical(store, result.turn_id)


@pytest.mark.spec("STD-COMP-04", "STD-COMP-05", "STD-COMP-14")
async def test_events_name_the_turns_and_the_summary_and_the_log_keeps_the_originals(store: Store) -> None:
    asked = Asked()
    results = await talked(store, clerk(asked, looking(0)), 16)
    folding = next(result for result in results if events_of(result, CompactionCompleted))
    (completed,) = events_of(folding, CompactionCompleted)
    (started,) = events_of(folding, CompactionStarted)
    turns = [result.turn_id for result in results]
    assert completed.affected_turn_ids == started.affected_turn_ids
    assert list(completed.affected_turn_ids) == turns[: len(completed.affected_turn_ids)] != []

    entry = next(entry for entry in folding.facts() if isinstance(entry.fact.event, CompactionCompleted))
    told = published(entry, "rt").payload
    assert told["summary_ref"] == told["continuation_ref"] == entry.event_id
    agent_id, _, seq = told["summary_ref"].rpartition(":")
    record = (await store.read(agent_id, after=int(seq) - 1))[0]
    event = record.fact.event
    assert isinstance(event, CompactionCompleted) and event.summary is not None and "SUMMARY" in event.summary.text

    whole = await store.read(folding.agent_id, thread_id="t")
    texts = "".join(getattr(entry.fact.event, "item", UserItem(parts=())).text for entry in whole)
    assert all(f"message {number} " in texts for number in range(16)), "nothing that was stored is gone"


@pytest.mark.spec("STD-COMP-10")
def test_triggers_are_those_of_the_standard() -> None:
    known = ("manual", "token_pressure", "context_budget", "context_exceeded", "session_length", "task_boundary")
    for trigger in (*known, "handoff", "custom"):
        CompactionStarted(compaction_id="c", trigger=trigger, tokens_before=1, cut=1)
    with pytest.raises(ValueError, match="trigger"):
        CompactionStarted(compaction_id="c", trigger="because", tokens_before=1, cut=1)


@pytest.mark.spec("STD-COMP-16")
async def test_the_next_turn_names_the_summary_and_the_summary_says_what_it_is(store: Store) -> None:
    asked = Asked()
    first = await run(clerk(asked, looking(12)), "find it", store=store, thread="t")
    (*_, completed) = events_of(first, CompactionCompleted)
    next_turn = Asked()
    second = await run(clerk(next_turn, looking(0)), "and now?", store=store, thread="t")
    resolved = events_of(second, ContextResolved)[0]
    assert resolved.compaction_id == completed.compaction_id
    summary = next_turn[0].items[0]
    assert summary == completed.summary
    assert summary.text.startswith("[Summary, written by scripted:inline. It stands in the place of ")
    assert f"of {completed.cut - 1} earlier entries of this conversation" in summary.text
    assert next_turn[0].items[1].text == "find it", "the message that it interrupted stays"
    fresh = await run(clerk(Asked(), looking(0)), "hello", store=store, thread="other")
    assert events_of(fresh, ContextResolved)[0].compaction_id is None


@pytest.mark.spec("STD-CTX-09", "STD-CTX-12")
async def test_what_requests_rest_on_is_written_down_again_with_each_summary(store: Store) -> None:
    asked = Asked()
    result = await run(clerk(asked, looking(12)), "find it", store=store)
    first, *later = events_of(result, ContextResolved)
    folded = events_of(result, CompactionCompleted)
    assert [event.revision for event in later] == list(range(2, len(folded) + 2))
    assert [(event.reason, event.compaction_id) for event in later] == [
        ("compaction", event.compaction_id) for event in folded
    ]
    assert (first.reason, first.compaction_id, first.omissions) == ("", None, ())
    for event in (first, *later):
        sections = (*event.instruction_refs, *event.history_refs)
        assert all(section.tokens is not None for section in sections)
        assert event.tokens_used == sum(section.tokens or 0 for section in sections)
        assert event.token_limit == WINDOW and event.tokens_are_estimate
        written = event.model_dump_json()
        assert "find it" not in written and "SUMMARY" not in written, "contents are named, not copied"
    assert [omission.reason for omission in later[0].omissions] == ["superseded_by_summary"]
    place = next(n for n, entry in enumerate(result.facts()) if isinstance(entry.fact.event, ContextResolved))
    assert not any(isinstance(entry.fact.event, ModelRequested) for entry in list(result.facts())[:place])


# --- what may not be lost --------------------------------------------------------------------------------------------


@pytest.mark.spec("STD-COMP-07", "STD-COMP-08")
async def test_what_is_open_and_what_is_linked_outlives_a_compaction(store: Store) -> None:
    @tool(effect="irreversible")
    def crash_site(x: str) -> ToolOutput:
        """Cites a source."""
        return ToolOutput("seen " + "lorem " * 200, metadata={"citations": [{"url": "https://example.org/paper"}]})

    @tool(effect="irreversible", timeout=0.01)
    async def lost_letter() -> str:
        """Never comes back."""
        await asyncio.sleep(30)
        return ""

    def answer(request: ModelRequest) -> Any:
        if request.answered == 0:
            return calls("lost_letter", ("crash_site", {"x": "1"}))
        return looking(20)(request)

    asked = Asked()
    agent = clerk(asked, answer, tools=[look, crash_site, lost_letter])
    result = await run(agent, "find it", store=store)
    completed = events_of(result, CompactionCompleted)
    assert len(completed) >= 2
    open_call = result.unknown[0].call_id
    for event in completed:
        assert event.preserved_incident_refs == (open_call,)
        assert event.preserved_evidence_refs == ("https://example.org/paper",)
    shown = asked.of(None)[-1].items[0].text
    assert f"Calls whose outcome nobody knows: {open_call}" in shown
    assert "Evidence: https://example.org/paper" in shown
    assert await identical(store, result.turn_id)


def dropping(ref: str) -> Any:
    """Puts a summary together and forgets one thing that had to be kept."""

    def write(words: str, items: Any, kept: PreservedRefs, *more: Any) -> UserItem:
        lists = (kept.actions, kept.incidents, kept.evidence, kept.artifacts)
        assert ref in kept.refs
        return summary_item(
            words, items, PreservedRefs(*(each - {ref} for each in lists), messages=kept.messages), *more
        )

    return write


def inventing(words: str, items: Any, kept: PreservedRefs, *more: Any) -> UserItem:
    lists = (kept.actions, kept.incidents, kept.evidence | {"https://example.org/never"}, kept.artifacts)
    return summary_item(words, items, PreservedRefs(*lists, messages=kept.messages), *more)


@pytest.mark.spec("STD-COMP-11")
async def test_what_is_kept_is_the_same_before_and_after_a_summary_or_the_summary_is_not_used(store: Store) -> None:
    """One run has all four: a question to a person, an unknown outcome, a cited source and a kept file."""

    @tool(effect="irreversible")
    def act() -> str:
        """Act."""
        return "acted"

    @tool(effect="irreversible", timeout=0.01)
    async def lost_letter() -> str:
        """Never comes back."""
        await asyncio.sleep(60)
        return ""

    @tool(effect="pure")
    async def cite(ctx: RunContext[None]) -> ToolOutput:
        """Cites a source, and keeps a file."""
        (agent_id,) = await store.agents()
        watch = store.watch(agent_id)
        async with asyncio.timeout(30):
            while not await store.actions(pending_only=True):  # the question is asked before anything is folded
                await watch.wait(timeout=0.05)
        watch.close()
        kept = await ctx.keep(b"the whole paper", "text/plain")
        cited = [{"source_url": "https://example.org/paper"}, {"id": "page 3, line 4"}]
        return ToolOutput("seen", artifacts=(kept,), metadata={"citations": cited})

    def answer(request: ModelRequest) -> Any:
        if request.level is None:
            jobs = [{"task": "act"}, {"task": "look around"}]
            return "all done" if request.answered else calls(("spawn_parallel", {"jobs": jobs}))
        if request.level.endswith("#0"):
            return "did it" if request.answered else calls("act")
        return calls("lost_letter", "cite") if request.answered == 0 else looking(20)(request)

    asked = Asked()  # its summaries say nothing of any of it
    tools = [look, act, lost_letter, cite]
    agent = clerk(asked, answer, tools=tools, hitl_tools=["act"], allow_parallel_subagents=True)
    rested = await run(agent, "go", store=store, key="k")
    (approval,) = rested.approvals
    (unknown,) = rested.unknown
    (kept_file,) = (end.artifact_refs[0] for end in events_of(rested, ToolResult) if end.tool_name == "cite")
    cited = ("https://example.org/paper", "page 3, line 4")
    completed = events_of(rested, CompactionCompleted)
    assert len(completed) >= 2 and events_of(rested, CompactionFailed) == []
    for event in completed:
        held = held_by(event.summary)
        assert held.actions == {*event.preserved_action_ids} == {approval.id}
        assert held.incidents == {*event.preserved_incident_refs} == {unknown.call_id}
        assert held.evidence == {*event.preserved_evidence_refs} == {*cited}
        assert held.artifacts == {*event.preserved_artifact_refs} == {kept_file}

    # The same run up to the end of its first summary, whose writer forgets one of them, or makes one up.
    facts = list(rested.facts())
    end = next(place for place, entry in enumerate(facts) if isinstance(entry.fact.event, CompactionCompleted))
    row = await store.turn(rested.turn_id)
    assert row is not None
    for how in (None, *map(dropping, (approval.id, unknown.call_id, *cited, kept_file)), inventing):
        state = (await fold(store, row, facts[:end])).state
        (writer,) = (level for level in state.tree.levels.values() if isinstance(level.role, SummaryRole))
        level, step = writer.parent, EndLevel(str(writer.id))
        assert level is not None
        before = list(level.conversation.items)
        event = settled_fold(state, level, writer, step, **({"write": how} if how is not None else {}))
        if how is None:
            assert isinstance(event, CompactionCompleted) and event.summary == facts[end].fact.event.summary  # type: ignore[union-attr]
            continue
        assert isinstance(event, CompactionFailed) and event.error_category == "conservation_violated"
        evolve(state, replace(facts[end].fact, event=event))
        assert level.conversation.items == before and state.tree.levels.get(str(writer.id)) is None, (
            "the original stays"
        )
    done = await run(agent, "go", store=store, key="k", approver=_approve)
    assert done.output == "all done" and await identical(store, done.turn_id)


@pytest.mark.spec("STD-COMP-06")
async def test_an_action_that_waits_outlives_a_compaction_beside_it_and_is_decided_afterwards(store: Store) -> None:
    ran: list[str] = []

    @tool(effect="irreversible")
    def act() -> str:
        """Act."""
        ran.append("act")
        return "acted"

    def answer(request: ModelRequest) -> Any:
        if request.level is None:
            jobs = [{"task": "act"}, {"task": "look around"}]
            return "all done" if request.answered else calls(("spawn_parallel", {"jobs": jobs}))
        if "act" in request.history[0].text:
            return "did it" if request.answered else calls("act")
        return looking(14)(request)

    asked = Asked()
    agent = clerk(asked, answer, tools=[look, act], hitl_tools=["act"], allow_parallel_subagents=True)
    rested = await run(agent, "go", store=store, key="k")
    assert (rested.status, ran) == ("approval_required", [])
    (approval,) = rested.approvals
    completed = events_of(rested, CompactionCompleted)
    assert completed, "the other child's conversation was folded meanwhile"
    for event in completed:
        assert event.preserved_action_ids == (approval.id,)
        assert f"Actions that wait for somebody: {approval.id}" in event.summary.text
    assert [record.action_id for record in await store.actions(pending_only=True)] == [approval.id]
    done = await run(agent, "go", store=store, key="k", approver=_approve)
    assert (done.status, done.output, ran) == ("completed", "all done", ["act"])
    assert await identical(store, done.turn_id)


async def _approve(approval: Any) -> Approve:
    return Approve()


@pytest.mark.spec("STD-COMP-12")
async def test_the_cut_lies_before_a_message_and_the_last_four_stay_word_for_word(store: Store) -> None:
    asked = Asked()
    results = await talked(store, clerk(asked, looking(0)), 20)
    folded = [seen for seen in asked.of(None) if seen.items[0].text.startswith("[Summary")]
    assert folded
    for seen in folded:
        spoken = [item for item in seen.items if isinstance(item, UserItem) and item.origin == "person"]
        assert len(spoken) >= 4 and isinstance(seen.items[1], UserItem), "cut before a message"
        numbers = [int(item.text.split()[1]) for item in spoken]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert all(item.text == f"message {n} " + "word " * 200 for n, item in zip(numbers, spoken, strict=True))
    first = next(result for result in results if events_of(result, CompactionCompleted))
    summary = events_of(first, CompactionCompleted)[0].summary
    assert "What the user wrote there, word for word:\n[...] " in summary.text and "- message 0 " not in summary.text
    assert "\n- message 5 word" in summary.text, "of what is folded, the newest has room"

    kept_two = Asked()
    agent = clerk(kept_two, looking(0), compaction=CompactionPolicy(keep_user_turns=2))
    for number in range(12):
        await run(agent, f"message {number} " + "word " * 200, store=store, thread="two")
    fold = next(seen for seen in kept_two.of(None) if seen.items[0].text.startswith("[Summary"))
    assert sum(isinstance(item, UserItem) and item.origin == "person" for item in fold.items) == 2

    within = Asked()
    await run(clerk(within, looking(15)), "never sell A17", store=store)
    for seen in within.of(None):
        assert has_whole_pairs(seen.items), "a call and its result stay together"
    assert within.of(None)[-1].items[1].text == "never sell A17", "summary after summary, it stays as it is"
    assert len(within.summaries) >= 2


@pytest.mark.parametrize("window", [4_000, 12_000, 26_000])
async def test_the_newest_message_is_never_cut(store: Store, window: int) -> None:
    """However often the turn that it began is folded; its picture stays with it, and later turns go on from there."""
    asked, long = Asked(), "Begin with A17. " + "and then the next one. " * (window // 50) + "Never sell B4."
    picture = Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")
    agent = clerk(asked, looking(window // 250), window=window)
    await run(agent, "older words " * 90, store=store, thread="t")
    result = await run(agent, [long, picture], store=store, thread="t")
    assert result.status == "completed" and len(asked.summaries) >= 2
    requests = [seen for seen in asked.of(None) if any("Begin" in item.text for item in seen.items)]
    for seen in requests[1:]:
        (message,) = (item for item in seen.items if item.text == long)
        assert [part.type for part in message.parts] == ["text", "image"] and has_whole_pairs(seen.items)
    assert any(seen.items[0].text.startswith("[Summary") and seen.items[1].text == long for seen in requests)
    after = Asked()
    third = await run(clerk(after, looking(0), window=window), "and now?", store=store, thread="t")
    assert after.of(None)[-1].items[-1].text == "and now?"
    assert await identical(store, result.turn_id) and await identical(store, third.turn_id)


async def test_the_task_of_a_child_is_never_cut(store: Store) -> None:
    asked, task = Asked(), "Count them. " + "Look at every one of them. " * 80 + "Say how many."

    def answer(request: ModelRequest) -> Any:
        if request.level is None:
            return "done" if request.answered else calls(("run_subtask", {"title": "count", "instructions": task}))
        return looking(16)(request)

    result = await run(clerk(asked, answer, subtasks=True), "go", store=store)
    child = [seen for seen in asked if seen.level is not None and not seen.is_summary]
    assert result.status == "completed" and len(asked.summaries) >= 2
    assert all(sum(task in item.text for item in seen.items) == 1 for seen in child)
    assert any(seen.items[0].text.startswith("[Summary") and task in seen.items[1].text for seen in child)
    assert await identical(store, result.turn_id)


def _level(*items: Any, keep: int = 4) -> Level:
    config = TurnConfig(
        agent_name="a", model_ref="m", context_window=1_000, compaction=CompactionPolicy(keep_user_turns=keep)
    )
    return Level(config=config, conversation=LevelConversation(list(items)))


def _asks(text: str = "x") -> UserItem:
    return UserItem(parts=(Text(text),))


def _round(number: int, text: str = "r") -> list[Any]:
    part = CallPart(call_id=f"c{number}", name="look", arguments={})
    return [AssistantItem(parts=(part,)), ToolItem(call_id=f"c{number}", name="look", parts=(Text(text),))]


def test_fewer_turns_are_kept_where_four_would_not_fit() -> None:
    turns = [item for n in range(6) for item in (_asks("q" * 700), *_round(n))]
    assert isinstance(_level().config, TurnConfig)
    cut = cut_of(_level(*turns), 1_000)
    assert cut == 12 and isinstance(turns[cut], UserItem), "the last two fit"
    one = [_asks("q" * 5_000), *(item for n in range(6) for item in _round(n, "r" * 300))]
    cut = cut_of(_level(*one), 1_000)
    assert isinstance(one[cut], AssistantItem) and cut > 1, "a single turn is cut between two rounds"
    assert cut_of(_level(_asks("q" * 9_000)), 1_000) == 0, "there is nothing to fold"


def test_what_the_user_wrote_is_bounded_and_goes_along() -> None:
    first = summary_item("words", [_asks("keep me"), _asks("\u4e00" * 50_000)], PreservedRefs(), None, None, 4_000)
    again = summary_item("words", [first, *(_asks(f"m{n} " + "y" * 900) for n in range(200))], PreservedRefs(), None)
    again = summary_item("words", [again, _asks("keep me")], PreservedRefs(), None)
    assert "- keep me" in again.text and "- m0 " not in again.text and "- m199 y" in again.text
    assert first.text.count("keep me") == 0, "a long message has room before an older one"
    assert len(again.text.encode()) < MAX_SAID_BYTES + 2_000
    assert len(summary_item("\x00" * 100_000, [_asks()], PreservedRefs(), None).model_dump_json()) < 30_000


def test_thousands_of_messages_are_named_by_the_oldest_and_the_newest() -> None:
    ids = [f"msg_{n}" for n in range(10_000)]
    assert named(ids[:300]) == tuple(ids[:300]) and len(named(ids)) == 300
    assert (named(ids)[0], named(ids)[-1]) == ("msg_0", "msg_9999")
    heard = [MessagePlace(n, ids[n], "operator_instruction", "t") for n in range(10_000)]
    level = Level(conversation=LevelConversation([_asks()] * 10_000, heard=heard))
    level.conversation.items.append(_asks("the newest"))
    kept = kept_by(level, 10_000, (), ())
    item = summary_item("words", level.conversation.items[:10_000], kept, None)
    text = item.text
    assert text.count("(operator_instruction)") == MAX_LISTED and "9960 between them" in text
    without = UserItem(
        parts=tuple(Text(part.text.replace("msg_9999", "")) for part in item.parts if part.type == "text")
    )
    assert differences(kept, item) == [] and differences(kept, without) == ["Messages folded: msg_9999"]


# --- when it does not work -------------------------------------------------------------------------------------------


@pytest.mark.spec("STD-COMP-13")
@pytest.mark.parametrize("how", ["fails", "says nothing", "says too much"])
async def test_a_compaction_that_fails_leaves_the_conversation_as_it_was(store: Store, how: str) -> None:
    def answer(request: ModelRequest) -> Any:
        if request.level and "~compaction:" in request.level:
            if how == "fails":
                return {"text": "", "fail": {"kind": "invalid_request", "message": "no"}}
            return "" if how == "says nothing" else "words " * 3_000
        return looking(9)(request)

    asked = Asked()
    result = await run(clerk(asked, answer, raw=True), "find it", store=store)
    assert (result.status, result.output) == ("completed", "the end")
    failed = events_of(result, CompactionFailed)
    assert failed and events_of(result, CompactionCompleted) == []
    expected = "still_too_large" if how == "says too much" else "summarizer_failed"
    assert {event.error_category for event in failed} == {expected}
    for before, after in pairwise(asked.of(None)):
        assert after.items[: len(before.items)] == before.items
    assert [event.compaction_id for event in events_of(result, CompactionStarted)] == [
        event.compaction_id for event in failed
    ]
    assert await identical(store, result.turn_id)
    stopped = await run(clerk(Asked(), answer, raw=True, budget_awareness="limit:60"), "find it", store=store)
    assert (stopped.status, stopped.stop_reason) == ("incomplete", "context_budget"), "unless a limit stops it visibly"


@pytest.mark.spec("STD-COMP-15")
async def test_after_a_context_error_there_is_one_compaction_and_one_retry(store: Store) -> None:
    def refusing(times: int) -> Any:
        refused: list[int] = []

        def answer(request: ModelRequest) -> Any:
            if request.answered == 4 and len(refused) < times:
                refused.append(1)
                return {"text": "", "fail": {"kind": "context_length_exceeded", "message": "too long"}}
            return looking(6)(request)

        return answer

    asked = Asked()
    once = await run(clerk(asked, refusing(1), window=100_000), "go", store=store)
    assert once.status == "completed"
    assert [event.trigger for event in events_of(once, CompactionStarted)] == ["context_exceeded"]
    assert len(asked.of(None)) == 8 and asked.of(None)[5].items[0].text.startswith("[Summary")
    assert await identical(store, once.turn_id)
    twice = Asked()
    ended = await run(clerk(twice, refusing(9), window=100_000), "go", store=store)
    assert (ended.status, ended.stop_reason) == ("failed", "provider_error")
    assert len(events_of(ended, CompactionStarted)) == 1 and len(twice.of(None)) == 6
    assert await identical(store, ended.turn_id)


# --- limits on the history -------------------------------------------------------------------------------------------


@pytest.mark.spec("LOOP-BUD-10", "LOOP-BUD-19")
async def test_history_is_pruned_to_its_limit_and_only_what_cannot_be_stops_the_run(store: Store) -> None:
    assert MAX_HISTORY_TOKENS == 128_000 == INTERACTIVE.history_tokens
    asked = Asked()
    long = {"calls": [{"name": "look", "arguments": {"x": "q" * 60_000}}]}
    answer = lambda request: long if request.answered < 14 else "the end"  # noqa: E731
    agent = clerk(asked, answer, window=None, budget=Budget(profile="interactive"))
    result = await run(agent, "go", store=store)
    assert result.status == "completed" and events_of(result, CompactionCompleted)
    assert events_of(result, LimitChanged) == [], "pruning is no limit that was hit"
    for seen in asked.of(None):
        assert len(seen.text) // 3 <= MAX_HISTORY_TOKENS
    huge = {"calls": [{"name": "look", "arguments": {"x": "q" * 500_000}}]}
    stopped = await run(clerk(Asked(), lambda r: huge, window=None, budget=agent.budget), "go", store=store)
    (limit,) = events_of(stopped, LimitChanged)
    assert (limit.limit_name, limit.limit, limit.what) == ("tokens", MAX_HISTORY_TOKENS, "history")
    assert (stopped.status, stopped.stop_reason, stopped.model_calls) == ("incomplete", "tokens", 1)
    assert limit.observed > MAX_HISTORY_TOKENS
    for each in (result, stopped):
        assert await identical(store, each.turn_id)


@pytest.mark.spec("LOOP-INV-07")
async def test_the_prefix_is_stable_between_two_summaries(store: Store) -> None:
    asked = Asked()
    await run(clerk(asked, looking(14), budget_awareness="per-message", planning_enabled=True), "go", store=store)
    root = asked.of(None)
    assert len({(seen.instructions, tuple(seen.tools)) for seen in root}) == 1
    anew = 0
    for before, after in pairwise(root):
        if after.items[: len(before.items)] != before.items:
            anew += 1
            assert after.items[0].text.startswith("[Summary"), "only a summary begins anew"
    assert anew == sum(seen.is_summary for seen in asked if not (seen.level or "").startswith("~plan~")) >= 1


async def test_agents_compact_by_default_and_may_be_told_not_to(store: Store) -> None:
    assert Agent("a", scripted(["x"])).compaction == CompactionPolicy(enabled=True, threshold=0.8, keep_user_turns=4)
    asked = Asked()
    off = await run(clerk(asked, looking(12), compaction=CompactionPolicy(enabled=False)), "go", store=store)
    assert off.status == "completed" and asked.summaries == []


async def test_a_summary_is_written_by_who_is_named(store: Store, tmp_path: Any) -> None:
    (tmp_path / "sum.yaml").write_text("- told by another\n" * 1)
    ref = f"scripted:{tmp_path / 'sum.yaml'}"
    asked = Asked()
    result = await run(clerk(asked, looking(9), compaction=CompactionPolicy(model=ref)), "go", store=store)
    (event,) = events_of(result, CompactionCompleted)
    assert event.model_ref == ref and "told by another" in event.summary.text and asked.summaries == []


async def test_an_estimate_takes_over_where_a_provider_reports_nothing(store: Store) -> None:
    level = _level(_asks("a" * 300))
    assert context_tokens(level) == 104
    level.next_request.known_tokens, level.next_request.known_at = 7, 1
    assert context_tokens(level) == 7
    started = TurnStarted.model_fields["window_from"]
    assert started.default == 1
