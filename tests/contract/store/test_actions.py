"""What a turn asks of somebody outside: opened once, decided once, listed, rebuilt. The same on every backend."""

from collections.abc import Sequence
from typing import Any

import pytest

from contract.store.conftest import Backend
from kit.runs.action_facts import RULE, about, asked, decided, rule_added, rule_revoked
from kit.runs.store_facts import (
    AGENT,
    NOON,
    TURN,
    claimed,
    completed,
    ended,
    message,
    requested,
    said,
    session,
    started,
)
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AlreadyDecided, EventRefused
from wakeful.contracts.events import (
    FilesTainted,
    RuntimeToolRequested,
    RuntimeToolResolved,
)
from wakeful.ports import ActionRow, Claim, RuleRow, Store, TaintRow


async def asking(store: Store) -> Claim:
    """A turn that has asked about its call."""
    claim = await claimed(store)
    await store.append(claim, [started(), requested(), completed(), said(), asked()])
    return claim


async def rows(store: Store) -> list[Any]:
    return [
        await store.actions(),
        await store.actions(pending_only=True),
        [await store.action(row.action_id) for row in await store.actions()],
        await store.rules(),
    ]


async def count(store: Store) -> int:
    return len(await store.read(AGENT))


async def test_what_a_turn_asks_has_a_row_from_the_moment_it_is_asked(store: Store) -> None:
    await asking(store)
    row = ActionRow(
        action_id="appr_1",
        kind="approval",
        agent_id=AGENT,
        agent_name="calc",
        turn_id=TURN,
        thread_id="main",
        step=1,
        call_id="call_1",
        tool_name="refund",
        status="pending",
        requested_at=NOON,
        expires_at=NOON + 60,
        decided_at=None,
        decided_by=None,
        required_seq=7,
        resolved_seq=None,
    )
    assert await store.action("appr_1") == row
    assert await store.actions(pending_only=True) == [row]
    assert await store.action("appr_2") is None


@pytest.mark.parametrize("status", ["approved", "rejected", "timed_out"])
async def test_a_decision_changes_the_row_and_nothing_pends_any_more(store: Store, other: Store, status: str) -> None:
    await asking(store)
    before = await store.action("appr_1")
    assert before is not None
    await other.admit(AGENT, [decided(status=status)])
    after = before._replace(status=status, decided_at=NOON + 5, decided_by="ada", resolved_seq=8)
    assert [await store.action("appr_1"), await other.action("appr_1")] == [after, after]
    assert await store.actions(pending_only=True) == []
    assert await store.actions() == [after]


@pytest.mark.parametrize("second", ["outsider", "owner"])
@pytest.mark.parametrize("first", ["outsider", "owner"])
async def test_it_is_decided_once_and_whoever_is_second_writes_nothing(store: Store, first: str, second: str) -> None:
    claim = await asking(store)

    async def decide(who: str, facts: Sequence[Fact]) -> None:
        if who == "owner":
            await store.append(claim, facts)
        else:
            await store.admit(AGENT, facts)

    await decide(first, [decided(by="ada")])
    known, before = await store.action("appr_1"), await count(store)
    # Whatever comes in the same transaction is not written either: a rule, a further fact of the turn.
    with pytest.raises(AlreadyDecided) as told:
        extra = [rule_added()] if second == "outsider" else [requested(step=2)]
        await decide(second, [*extra, decided(status="rejected", by="bob")])
    assert (told.value.action_id, told.value.status, told.value.decided_by) == ("appr_1", "approved", "ada")
    assert (await store.action("appr_1"), await count(store), await store.rules()) == (known, before, [])
    assert await store.verify() == []


async def test_two_decisions_in_one_transaction_are_none(store: Store) -> None:
    await asking(store)
    before = await count(store)
    with pytest.raises(AlreadyDecided):
        await store.admit(AGENT, [decided(), decided(status="rejected", by="bob")])
    assert await count(store) == before
    assert len(await store.actions(pending_only=True)) == 1


async def test_an_owner_that_comes_second_is_given_what_was_decided_when_it_looks_again(store: Store) -> None:
    claim = await asking(store)
    await store.admit(AGENT, [decided()])
    with pytest.raises(AlreadyDecided):
        await store.append(claim, [decided(status="timed_out", by="runtime")])
    (others,) = [await store.append(claim, [requested(step=2)])]
    assert [entry.fact.event.kind for entry in others] == ["action.resolved"]


async def test_what_nobody_asked_cannot_be_decided_and_a_name_is_asked_once(store: Store) -> None:
    claim = await asking(store)
    before = await count(store)
    with pytest.raises(EventRefused, match="nobody asked"):
        await store.admit(AGENT, [decided("appr_9")])
    with pytest.raises(EventRefused, match="asked before"):
        await store.append(claim, [asked()])
    assert await count(store) == before


async def test_they_are_listed_oldest_first_by_turn_and_by_what_pends(store: Store) -> None:
    claim = await asking(store)
    await store.append(claim, [asked("ask_2", at=NOON + 2, kind="question"), asked("appr_3", at=NOON + 1)])
    await store.admit(AGENT, [session(), message("turn_2")])
    second = await store.claim("turn_2")
    await store.append(second, [started("turn_2", index=2), asked("appr_4", turn="turn_2", at=NOON + 3)])
    await store.admit(AGENT, [decided("appr_3")])

    async def names(**which: Any) -> list[str]:
        return [row.action_id for row in await store.actions(**which)]

    assert await names() == ["appr_1", "appr_3", "ask_2", "appr_4"]
    assert await names(pending_only=True) == ["appr_1", "ask_2", "appr_4"]
    assert await names(turn_id="turn_2") == ["appr_4"]
    assert await names(turn_id=TURN, pending_only=True) == ["appr_1", "ask_2"]
    assert await names(turn_id="turn_9") == []
    assert [row.kind for row in await store.actions()] == ["approval", "approval", "question", "approval"]


async def test_a_call_that_a_client_runs_is_decided_once_too(store: Store) -> None:
    claim = await asking(store)
    wanted = RuntimeToolRequested(request_id="rt_1", tool_name="ui", args_sha256="1", timeout_at=NOON + 9)
    await store.append(claim, [about(wanted, "rt_1")])
    done = RuntimeToolResolved(request_id="rt_1", tool_name="ui", status="runtime_tool_completed", success=True)
    late = RuntimeToolResolved(request_id="rt_1", tool_name="ui", status="runtime_tool_timeout", success=False)
    await store.admit(AGENT, [about(done, "rt_1")])
    with pytest.raises(AlreadyDecided):
        await store.admit(AGENT, [about(late, "rt_1")])
    row = await store.action("rt_1")
    assert row is not None and (row.kind, row.status, row.decided_by) == ("client_tool", "completed", "client")


async def test_rules_are_listed_with_who_added_and_who_revoked_them(store: Store) -> None:
    await store.admit(AGENT, [session(), message()])
    await store.admit(AGENT, [rule_added()])
    await store.admit(AGENT, [rule_added("rule_2", "other", at=NOON + 1)])
    one = RuleRow("rule_1", AGENT, "calc", RULE, NOON, "ada", None, None)
    two = RuleRow("rule_2", AGENT, "other", RULE, NOON + 1, "ada", None, None)
    assert [await store.rules(), await store.rules("calc"), await store.rules("none")] == [[one, two], [one], []]
    await store.admit(AGENT, [rule_revoked()])
    await store.admit(AGENT, [rule_revoked(at=NOON + 8)])  # a second time changes nothing
    assert await store.rules("calc") == [one._replace(revoked_at=NOON + 7, revoked_by="bob")]


async def test_tainted_files_are_found_by_path_and_digest_whoever_wrote_them(store: Store) -> None:
    claim = await asking(store)
    began = FilesTainted(workspace="/w", cause="page", since=NOON)
    many = FilesTainted(workspace="/w", cause="page", files={"a.txt": "sha256:a", "d/": ""}, settles=NOON)
    other = FilesTainted(workspace="/elsewhere", cause="page", files={"a.txt": "sha256:a"})
    await store.append(claim, [about(began, "c1", at=NOON)])
    pending = TaintRow("/w", "", NOON, "", "page", AGENT, TURN, NOON)
    assert await store.tainted_files("/w/any") == [pending]
    await store.append(claim, [about(many, "c1", at=NOON + 1), about(other, "c1", at=NOON + 2)])
    one = TaintRow("/w", "a.txt", 0, "sha256:a", "page", AGENT, TURN, NOON + 1)
    folder = TaintRow("/w", "d/", 0, "", "page", AGENT, TURN, NOON + 1)
    assert await store.tainted_files("/w", below=True) == [one, folder], "what was pending is known better"
    assert await store.tainted_files("/w", below=True, limit=1) == [one]
    assert await store.tainted_files("/w/d/y") == [folder]
    assert await store.tainted_files("/w/x", digest="sha256:a") == [one]
    assert await store.tainted_files("/w/x", digest="sha256:b") == []
    assert await store.tainted_files("/w") == await store.tainted_files("/w/a") == []
    await store.rebuild_views()
    assert await store.tainted_files("/w", below=True) == [one, folder]


async def test_tainted_files_are_found_from_every_folder_around_and_below_them(store: Store) -> None:
    claim = await asking(store)
    files = {"inner/a.txt": "sha256:a", "inner-other/b.txt": "sha256:b"}
    outer = FilesTainted(workspace="/w", cause="page", files=files)
    inner = FilesTainted(workspace="/w/inner", cause="page", files={"c.txt": ""})
    whole = FilesTainted(workspace="/v", cause="page", since=0)
    await store.append(claim, [about(each, "c1", at=NOON + at) for at, each in enumerate((outer, inner, whole))])

    async def found(place: str, digest: str = "", below: bool = False) -> list[str]:
        rows = await store.tainted_files(place, digest=digest, below=below)
        return [f"{row.workspace}/{row.path}" for row in rows]

    assert await found("/w/inner/a.txt") == ["/w/inner/a.txt"]
    assert await found("/w/inner/c.txt") == ["/w/inner/c.txt"]
    assert await found("/w/inner", below=True) == ["/w/inner/a.txt", "/w/inner/c.txt"]
    assert await found("/w", below=True) == ["/w/inner-other/b.txt", "/w/inner/a.txt", "/w/inner/c.txt"]
    assert await found("/", below=True) == ["/w/inner-other/b.txt", "/w/inner/a.txt", "/w/inner/c.txt", "/v/"]
    assert await found("/w/inner/copy", "sha256:b") == ["/w/inner-other/b.txt"]
    assert await found("/elsewhere/copy", "sha256:b") == []
    assert await found("/v/deep/file") == await found("/v", below=True) == await found("/v/deep", below=True) == ["/v/"]
    assert await found("/vault", below=True) == []


async def test_rebuilt_rows_are_the_live_rows(store: Store, backend: Backend) -> None:
    claim = await asking(store)
    await store.append(claim, [asked("appr_2", at=NOON + 1), asked("ask_3", kind="question")])
    await store.admit(AGENT, [rule_added(), decided("appr_2", "rejected")])
    await store.admit(AGENT, [rule_added("rule_2")])
    await store.admit(AGENT, [rule_revoked()])
    with pytest.raises(AlreadyDecided):
        await store.admit(AGENT, [decided("appr_2")])
    await store.append(claim, [decided("ask_3", "timed_out", "runtime")])
    live = await rows(store)
    await store.rebuild_views()
    assert await rows(store) == live
    again = await backend.open()
    assert await rows(again) == live
    await again.close()
    # What was rebuilt decides like what was live: nothing pends that was decided, and the open one is still open.
    with pytest.raises(AlreadyDecided):
        await store.admit(AGENT, [decided("appr_2")])
    await store.admit(AGENT, [decided()])
    assert await store.actions(pending_only=True) == []


async def test_a_record_outlives_the_turn_that_asked(store: Store) -> None:
    claim = await asking(store)
    await store.append(claim, [decided(status="rejected", by="runtime"), ended()])
    await store.release(claim)
    row = await store.action("appr_1")
    assert row is not None and (row.status, row.decided_by) == ("rejected", "runtime")


async def test_the_secret_is_the_same_for_everybody_who_opens_the_store(
    store: Store, other: Store, backend: Backend
) -> None:
    assert len(store.secret) >= 32 and store.secret == other.secret
    await store.close()
    again = await backend.open()
    assert again.secret == other.secret
    await again.rebuild_views()
    assert again.secret == other.secret
    await again.close()


@pytest.mark.parametrize("seq", [7, 8])
async def test_a_record_whose_stored_bytes_were_changed_is_found(
    store: Store, other: Store, backend: Backend, seq: int
) -> None:
    claim = await claimed(store)
    words: Any = {"tool_name": "calc"}
    question = asked().event.model_copy(update=words)
    answer = decided().event.model_copy(update=words)
    await store.append(claim, [started(), requested(), completed(), said()])
    await store.append(claim, [about(question, "appr_1")])
    await store.admit(AGENT, [about(answer, "appr_1")])
    assert await other.verify() == []
    await backend.forge(AGENT, seq)
    assert [(found.agent_id, found.seq) for found in await other.verify()] == [(AGENT, seq)]
