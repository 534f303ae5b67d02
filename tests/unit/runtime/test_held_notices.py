"""Notices that wait: quiet hours, one digest a day, and results that are told when they change."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kit.wires.notice_receiver import passes, receiving
from wakeful import Agent, Runtime, tool
from wakeful.errors import InvalidConfig
from wakeful.testing import FixedClock, scripted

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = 3600
BROKEN = [{"fail": [{"kind": "contract_error", "message": "no such parameter"}]}]


@tool(approval=True)
def pay(cents: int) -> str:
    """Pay."""
    return "paid"


async def test_a_digest_is_one_message_a_day_with_every_agent_that_was_held_for_it(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with receiving() as there:
        to = {"to": there.url, "digest": "08:00", "quiet": "22:00-07:00"}
        calls = [{"calls": [{"name": "pay", "arguments": {"cents": 5}}]}, "paid"]
        agents = [
            Agent("ops", scripted(BROKEN), notify=to),
            Agent("desk", scripted(BROKEN), notify=to),
            Agent("cash", scripted(calls), tools=[pay], notify=to),
        ]
        async with Runtime(tmp_path, agents=agents, clock=clock) as rt:
            for name in ("ops", "desk", "cash"):
                await rt.answer(await rt.send(name, "Check."))
            await rt.settled()
            assert [each["kind"] for each in there.got] == ["action_required"]  # it breaks through
            assert {each.state for each in await rt.notices() if each.kind == "failure"} == {"pending"}
            await passes(rt, clock, 7 * HOUR)
            assert len(there.got) == 1
        async with Runtime(tmp_path, agents=agents, clock=clock) as rt:  # what is held outlives the process
            await passes(rt, clock, 1.5 * HOUR)
            digest = there.got[-1]
            assert (len(there.got), digest["kind"], len(digest["notices"])) == (2, "digest", 2)
            assert "desk: " in digest["text"] and "ops: " in digest["text"]
            assert {each.state for each in await rt.notices()} == {"delivered"}
            await rt.answer(await rt.send("ops", "Again."))
            await passes(rt, clock, 24 * HOUR)
            assert [each["kind"] for each in there.got].count("digest") == 2  # the next day has one of its own


async def test_a_digest_that_cannot_be_delivered_is_tried_again_whole(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    async with receiving() as there:
        there.status = 503
        to = {"to": there.url, "digest": "08:00"}
        agents = [Agent("ops", scripted(BROKEN), notify=to), Agent("desk", scripted(BROKEN), notify=to)]
        async with Runtime(tmp_path, agents=agents, clock=clock) as rt:
            for name in ("ops", "desk"):
                await rt.answer(await rt.send(name, "Check."))
            await passes(rt, clock, 9 * HOUR)
            there.status = 200
            await passes(rt, clock, HOUR)
            assert {each.state for each in await rt.notices()} == {"delivered"}
        assert [len(each["notices"]) for each in there.got] == [2, 2]


async def test_a_result_is_told_when_it_is_another_one_and_an_unchanged_one_says_nothing(tmp_path: Path) -> None:
    clock = FixedClock(MIDNIGHT)
    says = iter(["All is well.", "All  is well.", "Two are missing.", "Hello, ann.", "Two are missing."])
    async with receiving() as there:
        agent = Agent(
            "ops",
            scripted(lambda _: next(says)),
            wake=[{"cron": "0 * * * *", "say": "Check the backups."}],
            notify={"to": there.url, "on": ["change"]},
        )
        async with Runtime(tmp_path, agents=[agent], clock=clock) as rt:
            for _ in range(3):
                await passes(rt, clock, HOUR)
            await rt.answer(await rt.send("ops", "Who is there?"))  # an answer to the operator is no change
            await passes(rt, clock, HOUR)
            assert [each["text"] for each in there.got] == ["ops: All is well.", "ops: Two are missing."]
            assert [each.kind for each in await rt.notices()] == ["change", "change"]


async def test_agents_that_say_nothing_notify_the_default_of_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiving() as there:
        owner = tmp_path / "wakeful.toml"
        owner.write_text(f'[notify.default]\nto = "{there.url}"\non = ["failure"]\n')
        monkeypatch.setenv("WAKEFUL_CONFIG", str(owner))
        async with Runtime(tmp_path / "home", agents=[Agent("ops", scripted(BROKEN))], clock=FixedClock()) as rt:
            await rt.answer(await rt.send("ops", "Check."))
            await rt.settled()
            assert [(each.kind, each.state) for each in await rt.notices()] == [("failure", "delivered")]


@pytest.mark.parametrize(
    ("notify", "told"),
    [
        ({"to": "https://example.org", "digest": "8"}, "digest"),
        ({"to": "https://example.org", "digest": "23:00", "quiet": "22:00-07:00"}, "in the quiet hours"),
        ({"to": "https://example.org", "on": ["changes"]}, "on"),
        ({"to": "channel:"}, "channel:"),
    ],
)
async def test_terms_that_cannot_be_kept_are_refused(notify: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidConfig, match=told):
        Agent("ops", scripted(["x"]), notify=notify)
