"""Rules of `channels`, `channel_inputs` and `channel_messages`, and of their wakes.

What a paired phone wants is stored with the place up to which was looked, in one commit, and has a wake until it is
carried out: a kill neither loses nor repeats it. A message that shows an approval has a wake from the decision on.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from wakeful.contracts.channels import MOST_CANDIDATES
from wakeful.contracts.envelope import MAIN_THREAD, Fact
from wakeful.contracts.errors import EventRefused
from wakeful.contracts.events import (
    ActionResolved,
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
    NoticeAttempted,
)
from wakeful.ports.approvals import ACTIONS
from wakeful.ports.channels import (
    CHANNEL_INPUTS,
    CHANNEL_MESSAGES,
    CHANNELS,
    ChannelInputRow,
    ChannelMessageRow,
    ChannelRow,
)
from wakeful.ports.wakes import WakeRow
from wakeful.store.tables.row_rules import AtHand, Gone, LogEntry, Need, RowKey, RowRule, Rules

OfChannel: TypeAlias = (
    ChannelPairingOpened
    | ChannelPeerSeen
    | ChannelPaired
    | ChannelRemoved
    | ChannelTestRequested
    | ChannelMessageAttempted
    | ChannelInputReceived
    | ChannelPolled
    | ChannelTroubled
)


def _added(entry: LogEntry, event: ChannelAdded, rows: AtHand) -> list[ChannelRow]:
    known = rows.get(CHANNELS, event.channel)
    if known is not None and (known.state != "removed" or event.generation <= known.generation):
        raise EventRefused(
            f"there is a channel {event.channel}, {known.state}, with generation {known.generation}",
            f"Remove it first: wakeful channel remove {event.channel}",
        )
    return [
        ChannelRow(
            name=event.channel,
            agent_id=entry.agent_id,
            kind=event.channel_kind,
            server=event.server,
            key_variable=event.key_variable,
            scopes=event.scopes,
            allow_private=event.allow_private,
            generation=event.generation,
            state="open",
            peer="",
            candidates=(),
            pairing_until=0,
            cursor="",
            added_by=event.added_by,
            added_at=entry.fact.at,
            paired_at=None,
            heard_at=None,
            strangers=0,
            refused=0,
            sent_error="",
            trouble="",
            salt=event.salt,
        )
    ]


def _changed(entry: LogEntry, event: OfChannel, rows: AtHand) -> list[ChannelRow]:
    if isinstance(event, ChannelMessageAttempted) and not _is_there(event, rows):
        return []  # it was removed meanwhile, and the wake goes all the same
    row, at = _there(event, rows), entry.fact.at
    match event:
        case ChannelPairingOpened():
            return [row._replace(pairing_until=event.until, candidates=())]
        case ChannelPeerSeen():
            candidates = tuple(dict.fromkeys((*row.candidates, event.peer)))
            return [row._replace(candidates=candidates[:MOST_CANDIDATES])]
        case ChannelPaired():
            return [row._replace(state="paired", peer=event.peer, paired_at=at, pairing_until=0, candidates=())]
        case ChannelRemoved():
            return [row._replace(state="removed", peer="", candidates=(), pairing_until=0, trouble="")]
        case ChannelMessageAttempted():
            return [row._replace(sent_error=event.error)]
        case ChannelInputReceived():
            return [row._replace(heard_at=at)]
        case ChannelPolled():
            strangers, refused = row.strangers + event.strangers, row.refused + event.refused
            return [row._replace(cursor=event.cursor, strangers=strangers, refused=refused)]
        case ChannelTroubled():
            return [row._replace(trouble=event.words)]
        case ChannelTestRequested():
            return [row]


def _is_there(event: Any, rows: AtHand) -> bool:
    row = rows.get(CHANNELS, event.channel)
    return row is not None and row.state != "removed"


def _there(event: Any, rows: AtHand) -> ChannelRow:
    row = rows.get(CHANNELS, event.channel)
    if row is None or row.state == "removed":
        raise EventRefused(f"{event.kind} names the channel {event.channel}, and there is none", "wakeful channel list")
    return row


def _of_channel(agent_id: str, fact: Fact, event: Any) -> Sequence[Need]:
    return (RowKey(CHANNELS, (event.channel,)),)


# --- what phones want --------------------------------------------------------------------------------------------


def _received(entry: LogEntry, event: ChannelInputReceived, rows: AtHand) -> list[ChannelInputRow]:
    if rows.get(CHANNEL_INPUTS, event.input_id) is not None:
        raise EventRefused(f"{event.input_id} came before", "Leave it.")
    return [
        ChannelInputRow(
            input_id=event.input_id,
            agent_id=entry.agent_id,
            channel=event.channel,
            caller=event.caller,
            verb=event.verb,
            action_id=event.action_id,
            target=event.agent_id,
            words=event.words,
            received_at=entry.fact.at,
            state="pending",
            error="",
            settled_at=None,
        )
    ]


def _settled(entry: LogEntry, event: ChannelInputSettled, rows: AtHand) -> list[ChannelInputRow]:
    row = rows.get(CHANNEL_INPUTS, event.input_id)
    if row is None or row.state != "pending":
        raise EventRefused(f"{event.input_id} is not pending", "Leave it.")
    return [row._replace(state=event.outcome, error=event.error, settled_at=entry.fact.at)]


def _of_input(agent_id: str, fact: Fact, event: ChannelInputReceived | ChannelInputSettled) -> Sequence[Need]:
    return (RowKey(CHANNEL_INPUTS, (event.input_id,)),)


# --- where approvals are shown -----------------------------------------------------------------------------------


def _shown(entry: LogEntry, event: NoticeAttempted, rows: AtHand) -> list[ChannelMessageRow]:
    if event.message_ref is None or event.action_id is None:
        return []
    known = rows.get(CHANNEL_MESSAGES, event.action_id)
    refs = (*(known.refs if known is not None else ()), event.message_ref)
    return [ChannelMessageRow(event.action_id, entry.agent_id, event.channel, refs, is_closed=False, attempts=0)]


def _closed(entry: LogEntry, event: ChannelMessageClosed, rows: AtHand) -> list[ChannelMessageRow]:
    row = rows.get(CHANNEL_MESSAGES, event.action_id)
    if row is None or row.is_closed:
        raise EventRefused(f"no message shows {event.action_id} as open", "Leave it.")
    return [row._replace(is_closed=event.next_at is None, attempts=event.attempt)]


def _of_shown(agent_id: str, fact: Fact, event: NoticeAttempted) -> Sequence[Need]:
    if event.action_id is None:
        return ()
    return (RowKey(CHANNEL_MESSAGES, (event.action_id,)), RowKey(ACTIONS, (event.action_id,)))


def _of_message(agent_id: str, fact: Fact, event: ActionResolved | ChannelMessageClosed) -> Sequence[Need]:
    return (RowKey(CHANNEL_MESSAGES, (event.action_id,)),)


CHANNEL_RULES: Rules = {
    ChannelAdded: RowRule(_added, (_of_channel,)),
    **{
        event: RowRule(_changed, (_of_channel,))
        for event in (
            ChannelPairingOpened,
            ChannelPeerSeen,
            ChannelPaired,
            ChannelRemoved,
            ChannelTestRequested,
            ChannelMessageAttempted,
            ChannelInputReceived,
            ChannelPolled,
            ChannelTroubled,
        )
    },
}
INPUT_RULES: Rules = {
    ChannelInputReceived: RowRule(_received, (_of_input,)),
    ChannelInputSettled: RowRule(_settled, (_of_input,)),
}
MESSAGE_ON_PHONE_RULES: Rules = {
    NoticeAttempted: RowRule(_shown, (_of_shown,)),
    ChannelMessageClosed: RowRule(_closed, (_of_message,)),
}


# --- wakes -------------------------------------------------------------------------------------------------------


def input_subject(input_id: str) -> str:
    return f"channel:input:{input_id}"


def say_subject(purpose: str, channel: str, peer: str = "") -> str:
    return f"channel:{purpose}:{channel}:{peer}"


def message_subject(action_id: str) -> str:
    return f"channel:decided:{action_id}"


def _at_once(entry: LogEntry, subject: str, cause_id: str) -> WakeRow:
    at = entry.fact.at
    return WakeRow(entry.agent_id, MAIN_THREAD, subject, at, "channel", cause_id, at, at)


def _wake_input(entry: LogEntry, event: ChannelInputReceived, rows: AtHand) -> list[WakeRow]:
    return [_at_once(entry, input_subject(event.input_id), event.input_id)]


def _wake_settled(entry: LogEntry, event: ChannelInputSettled, rows: AtHand) -> list[Gone]:
    return [Gone((entry.agent_id, MAIN_THREAD, input_subject(event.input_id)))]


def _wake_pairing(entry: LogEntry, event: ChannelPairingOpened, rows: AtHand) -> list[WakeRow]:
    """A topic has one reader, who is told at once. A bot has to be spoken to first."""
    row = rows.get(CHANNELS, event.channel)
    is_known = row is not None and row.kind == "ntfy"
    return [_at_once(entry, say_subject("pairing", event.channel), event.channel)] if is_known else []


def _wake_seen(entry: LogEntry, event: ChannelPeerSeen, rows: AtHand) -> list[WakeRow]:
    return [_at_once(entry, say_subject("pairing", event.channel, event.peer), event.channel)]


def _wake_test(entry: LogEntry, event: ChannelTestRequested, rows: AtHand) -> list[WakeRow]:
    return [_at_once(entry, say_subject("test", event.channel), event.channel)]


def _wake_said(entry: LogEntry, event: ChannelMessageAttempted, rows: AtHand) -> list[Gone]:
    return [Gone((entry.agent_id, MAIN_THREAD, say_subject(event.purpose, event.channel, event.peer)))]


def _wake_shown(entry: LogEntry, event: NoticeAttempted, rows: AtHand) -> list[WakeRow]:
    """It was decided while it was being shown."""
    if event.message_ref is None or event.action_id is None:
        return []
    action = rows.get(ACTIONS, event.action_id)
    if action is None or action.status == "pending":
        return []
    return [_at_once(entry, message_subject(event.action_id), event.action_id)]


def _wake_decided(entry: LogEntry, event: ActionResolved, rows: AtHand) -> list[WakeRow]:
    row = rows.get(CHANNEL_MESSAGES, event.action_id)
    if row is None or row.is_closed:
        return []
    return [_at_once(entry, message_subject(event.action_id), event.action_id)]


def _wake_closed(entry: LogEntry, event: ChannelMessageClosed, rows: AtHand) -> list[WakeRow | Gone]:
    subject, at = message_subject(event.action_id), event.next_at
    if at is None:
        return [Gone((entry.agent_id, MAIN_THREAD, subject))]
    return [WakeRow(entry.agent_id, MAIN_THREAD, subject, at, "channel", event.action_id, at, entry.fact.at)]


CHANNEL_WAKES: Rules = {
    ChannelInputReceived: RowRule(_wake_input),
    ChannelInputSettled: RowRule(_wake_settled),
    ChannelPairingOpened: RowRule(_wake_pairing, (_of_channel,)),
    ChannelPeerSeen: RowRule(_wake_seen),
    ChannelTestRequested: RowRule(_wake_test),
    ChannelMessageAttempted: RowRule(_wake_said),
    NoticeAttempted: RowRule(_wake_shown, (_of_shown,)),
    ActionResolved: RowRule(_wake_decided, (_of_message,)),
    ChannelMessageClosed: RowRule(_wake_closed),
}
