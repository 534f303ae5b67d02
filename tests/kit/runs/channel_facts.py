"""The part of the story of all tables that is about channels."""

from typing import Any

from kit.runs.store_facts import NOON
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    AnyEvent,
    ChannelAdded,
    ChannelInputReceived,
    ChannelInputSettled,
    ChannelMessageAttempted,
    ChannelMessageClosed,
    ChannelPaired,
    ChannelPairingOpened,
    ChannelPeerSeen,
    ChannelPolled,
    ChannelRemoved,
    ChannelTestRequested,
    ChannelTroubled,
    HeartbeatChanged,
    NoticeAttempted,
    NoticeRequested,
    PackageReplaced,
    ResultChanged,
    RuntimePartFailed,
)
from wakeful.contracts.events.holds import RUNTIME_STREAM
from wakeful.ports import Store


def added(name: str, kind: Any = "ntfy", generation: int = 1, salt: str | None = None) -> ChannelAdded:
    return ChannelAdded(
        channel=name,
        channel_kind=kind,
        server=f"https://{kind}.example",
        generation=generation,
        added_by="ada",
        salt=salt,
    )


def wanted(input_id: str, channel: str = "phone") -> ChannelInputReceived:
    caller = f"channel:ntfy:{channel}"
    return ChannelInputReceived(
        channel=channel, input_id=input_id, caller=caller, verb="approve", action_id="appr_1", agent_id="ops"
    )


def shown(notice_id: str, ref: str, action_id: str) -> NoticeAttempted:
    return NoticeAttempted(
        notice_id=notice_id,
        attempt=1,
        outcome="failed",
        channel="phone",
        message_ref=ref,
        action_id=action_id,
        next_at=NOON + 9,
    )


CHANNELS: list[list[AnyEvent]] = [
    [added("phone"), ChannelPairingOpened(channel="phone", until=NOON + 600, opened_by="ada")],
    [ChannelMessageAttempted(channel="phone", purpose="pairing", error="HTTP 503")],
    [ChannelPaired(channel="phone", peer="topic", paired_by="ada")],
    [added("chat", "telegram"), ChannelPairingOpened(channel="chat", until=NOON + 600, opened_by="ada")],
    [ChannelPeerSeen(channel="chat", peer="17"), ChannelPeerSeen(channel="chat", peer="18")],
    [ChannelMessageAttempted(channel="chat", purpose="pairing", peer="17")],
    [ChannelPolled(channel="chat", cursor="9", strangers=2, refused=1)],
    [ChannelTroubled(channel="chat", words="another program polls the bot")],
    [ChannelTestRequested(channel="phone", requested_by="ada")],
    [wanted("inp_1"), wanted("inp_2"), ChannelPolled(channel="phone", cursor="m2")],
    [ChannelInputSettled(channel="phone", input_id="inp_1", outcome="done")],
    [added("old"), ChannelRemoved(channel="old", removed_by="ada")],
    [added("old", generation=2, salt="salt_o"), ChannelRemoved(channel="old", removed_by="ada")],
    [ChannelMessageAttempted(channel="old", purpose="test")],
    [HeartbeatChanged(ok=False, error="HTTP 503"), PackageReplaced(running="0.1.0", installed="0.2.0")],
    [RuntimePartFailed(part="the watchdog", error="KeyError: 'x'")],
]
"""In the runtime's own stream."""
RESULTS: list[AnyEvent] = [
    ResultChanged(source="timer_1", digest="00", text="all is well"),
    ResultChanged(source="timer_1", digest="01", text="two backups are missing"),
    ResultChanged(digest="02", text="built"),
]
CLOSED: list[AnyEvent] = [
    ChannelMessageClosed(channel="phone", action_id="appr_p1", error="HTTP 503", next_at=NOON + 20),
    ChannelMessageClosed(channel="phone", action_id="appr_p1", attempt=2),
]


def fact_of(event: AnyEvent) -> Fact:
    return Fact(event, NOON, "main" if event.needs else None)


async def tell_channels(store: Store, agent: str) -> None:
    """Of an agent of a runtime that is there."""
    for events in CHANNELS:
        await store.admit(RUNTIME_STREAM, [fact_of(event) for event in events])
    await store.admit(agent, [Fact(NoticeRequested(requested_by="ada"), NOON)])
    (notice, *_) = await store.notices(agent)
    for ref, action_id in (("m1", "appr_p1"), ("m2", "appr_p1"), ("m3", "appr_p2")):
        await store.admit(agent, [Fact(shown(notice.notice_id, ref, action_id), NOON)])
    for event in RESULTS:
        await store.admit(agent, [Fact(event, NOON)])
    for event in CLOSED:
        await store.admit(agent, [Fact(event, NOON + 10)])


def told_channels() -> list[list[Fact]]:
    return [[fact_of(event) for event in events] for events in (*CHANNELS, CLOSED, RESULTS)]
