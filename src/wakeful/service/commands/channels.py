"""Channels: added, paired by a code that is typed in the terminal, tested, removed; and what their phones want, done.

Each is a fact in the log. The process that runs the agents sends and listens, so none of these needs that process.
"""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from wakeful.contracts.approvals import Answer, Approve, Decided, Reject
from wakeful.contracts.channels import (
    NAME,
    PAIRING_SECONDS,
    SCOPES,
    SERVERS,
    TOPIC,
    ChannelKind,
    ChannelScope,
)
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import ChannelNotFound, EventRefused, ForTheCaller, InvalidRequest, NotEntitled
from wakeful.contracts.events import (
    ChannelAdded,
    ChannelPaired,
    ChannelPairingOpened,
    ChannelRemoved,
    ChannelTestRequested,
)
from wakeful.contracts.messages import ChannelOrigin
from wakeful.decisions.channels import pairing_code, same_pairing_code, topic_of
from wakeful.decisions.ingress import Arrival
from wakeful.decisions.network_addresses import is_loopback
from wakeful.decisions.salted_secrets import SALT, salted
from wakeful.engine.run_request import Engine
from wakeful.ports.channels import ChannelInputRow, ChannelRow, Channels
from wakeful.runtime.channel_listeners import InputSettlement
from wakeful.runtime.parked_providers import append_to_runtime
from wakeful.service.commands.agents import agent_named, pause_agent, receive_message
from wakeful.service.commands.approvals import decide
from wakeful.views.channels import ChannelRecord, NewChannelRecord

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


async def channel_named(store: Channels, name: str) -> ChannelRow:
    """Raises InvalidRequest with the names there are."""
    row = await store.channel(name)
    if row is None or row.state == "removed":
        names = ", ".join(each.name for each in await store.channels()) or "none"
        raise ChannelNotFound(f"there is no channel {name!r}", f"There are: {names}. Add one: wakeful channel add ntfy")
    return row


async def add_channel(
    engine: Engine,
    kind: ChannelKind,
    name: str,
    *,
    server: str | None,
    token_env: str | None,
    scopes: Sequence[str],
    allow_private: bool,
    by: str,
) -> NewChannelRecord:
    """Make a channel, and open it for pairing. Raises InvalidRequest."""
    if kind not in SERVERS:
        raise InvalidRequest(f"there is no kind of channel {kind!r}", f"Give one of: {', '.join(SERVERS)}.")
    if re.fullmatch(NAME, name) is None:
        raise InvalidRequest(f"{name!r} is not a name for a channel", "Give a word, such as: phone")
    if token_env is not None and _VARIABLE.fullmatch(token_env) is None:
        raise InvalidRequest(
            "token_env is not the name of a variable", "Put the token in secrets.env, and name it here."
        )
    if kind == "telegram" and token_env is None:
        hint = "Write TELEGRAM_TOKEN=... in secrets.env of the home, then: --token-env TELEGRAM_TOKEN"
        raise InvalidRequest("a Telegram bot needs its token", hint)
    known = await engine.store.channel(name)
    added = ChannelAdded(
        channel=name,
        channel_kind=kind,
        server=_checked_server(server or SERVERS[kind], allow_private),
        key_variable=token_env,
        scopes=_checked_scopes(scopes),
        allow_private=allow_private,
        generation=1 if known is None else known.generation + 1,
        added_by=by,
        salt=engine.ids.new(SALT),
    )
    try:
        await append_to_runtime(engine, Fact(added, engine.clock.now()), _opened(engine, name, by))
    except EventRefused as refused:
        raise InvalidRequest(refused.message, refused.hint) from None
    row = await channel_named(engine.store, name)
    return NewChannelRecord(**record_of(row).model_dump(), subscribe=subscription(engine, row))


async def open_pairing(engine: Engine, name: str, *, by: str) -> NewChannelRecord:
    """Have the phone shown another code, or another phone paired. Raises InvalidRequest."""
    await channel_named(engine.store, name)
    await append_to_runtime(engine, _opened(engine, name, by))
    row = await channel_named(engine.store, name)
    return NewChannelRecord(**record_of(row).model_dump(), subscribe=subscription(engine, row))


async def pair_channel(engine: Engine, name: str, code: str, *, by: str) -> ChannelRecord:
    """Pair the phone that shows this code. Raises InvalidRequest for a code that no phone was shown."""
    row, now = await channel_named(engine.store, name), engine.clock.now()
    if row.pairing_until <= now:
        raise InvalidRequest(
            f"the channel {name} is not open for pairing", f"Get another code: wakeful channel pair {name}"
        )
    peers = (TOPIC,) if row.kind == "ntfy" else row.candidates
    secret = salted(engine.store.secret, row.salt)
    fitting = [
        peer
        for peer in peers
        if same_pairing_code(code, pairing_code(secret, name, row.generation, peer, row.pairing_until))
    ]
    if not fitting:
        hint = (
            "Type the code as the phone shows it." if peers else "Send /start to the bot first; it answers with a code."
        )
        raise InvalidRequest(
            f"no phone was shown this code for {name}", f"{hint} Another one: wakeful channel pair {name}"
        )
    await append_to_runtime(engine, Fact(ChannelPaired(channel=name, peer=fitting[0], paired_by=by), now))
    return record_of(await channel_named(engine.store, name))


async def remove_channel(engine: Engine, name: str, *, by: str) -> ChannelRecord:
    row = await channel_named(engine.store, name)
    await append_to_runtime(engine, Fact(ChannelRemoved(channel=name, removed_by=by), engine.clock.now()))
    return record_of(row._replace(state="removed"))


async def request_channel_test(engine: Engine, name: str, *, by: str) -> ChannelRecord:
    """Have a test message with a button sent. Raises InvalidRequest for a channel that nobody is paired with."""
    row = await channel_named(engine.store, name)
    if row.state != "paired":
        raise InvalidRequest(
            f"the channel {name} is paired with no phone", f"Pair a phone: wakeful channel pair {name}"
        )
    await append_to_runtime(engine, Fact(ChannelTestRequested(channel=name, requested_by=by), engine.clock.now()))
    return record_of(row)


async def list_channels(store: Channels) -> list[ChannelRecord]:
    return [record_of(row) for row in await store.channels()]


def record_of(row: ChannelRow) -> ChannelRecord:
    return ChannelRecord(
        channel=row.name,
        kind=row.kind,
        server=row.server,
        state=row.state,
        scopes=row.scopes,
        caller=row.caller,
        added_by=row.added_by,
        added_at=row.added_at / 1e6,
        paired_at=None if row.paired_at is None else row.paired_at / 1e6,
        pairing_until=row.pairing_until / 1e6 if row.pairing_until else None,
        heard_at=None if row.heard_at is None else row.heard_at / 1e6,
        strangers=row.strangers,
        refused=row.refused,
        sent_error=row.sent_error,
        trouble=row.trouble,
    )


def subscription(engine: Engine, row: ChannelRow) -> str | None:
    """Of ntfy: the address that a phone subscribes to. It is secret."""
    if row.kind != "ntfy":
        return None
    return f"{row.server}/{topic_of(salted(engine.store.secret, row.salt), row.name, row.generation, 'out')}"


async def carry_out(engine: Engine, row: ChannelInputRow) -> InputSettlement:
    """Do what a paired phone wanted. The same again changes nothing."""
    try:
        match row.verb:
            case "ok":
                return InputSettlement("done")
            case "send":
                return await _send(engine, row)
            case "pause":
                return await _pause(engine, row)
            case "approve":
                return await _decide(engine, row, Approve(note=row.words))
            case "reject":
                return await _decide(engine, row, Reject(note=row.words))
            case "answer":
                return await _decide(engine, row, Answer(row.words))
    except (ForTheCaller, NotEntitled) as problem:
        return InputSettlement("refused", problem.message)


async def _decide(engine: Engine, row: ChannelInputRow, decided: Decided) -> InputSettlement:
    assert row.action_id is not None
    outcome = await decide(engine, row.action_id, decided, by=row.caller)
    decided_at = round((outcome.approval.decided_at or 0.0) * 1e6)
    if outcome.duplicate and (outcome.approval.decided_by != row.caller or decided_at < row.received_at):
        return InputSettlement("late", f"it was {outcome.approval.status} by {outcome.approval.decided_by}")
    return InputSettlement("done")


async def _pause(engine: Engine, row: ChannelInputRow) -> InputSettlement:
    agent = await agent_named(engine.store, row.target)
    if agent.changed_at >= row.received_at:  # paused for this before a kill, or somebody decided otherwise since
        return InputSettlement("done" if agent.changed_by == row.caller else "late", f"{row.target} is {agent.control}")
    await pause_agent(engine, row.target, by=row.caller, reason="asked for on a phone")
    return InputSettlement("done")


async def _send(engine: Engine, row: ChannelInputRow) -> InputSettlement:
    """It is a message of a channel: words from outside, whoever holds the phone."""
    arrival = Arrival(
        surface="http_public_enqueue",
        admission="control_authenticated",
        kind="channel_event",
        origin=ChannelOrigin(channel_id=row.channel, sender_id=row.caller),
    )
    await receive_message(engine, row.target, row.words, arrival, key=row.input_id)
    return InputSettlement("done")


def _opened(engine: Engine, name: str, by: str) -> Fact:
    now = engine.clock.now()
    return Fact(ChannelPairingOpened(channel=name, until=now + PAIRING_SECONDS * 1_000_000, opened_by=by), now)


def _checked_scopes(given: Sequence[str]) -> tuple[ChannelScope, ...]:
    unknown = [scope for scope in given if scope not in SCOPES]
    if unknown or not given:
        told = f"there is no scope {unknown[0]!r}" if unknown else "a channel needs a scope"
        raise InvalidRequest(told, f"Give one or more of: {', '.join(SCOPES)}.")
    return tuple(scope for scope in SCOPES if scope in given)


def _checked_server(server: str, allow_private: bool) -> str:
    """Without a path and a query, and with TLS unless it stays on this machine or the owner says otherwise."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.username is not None:
        raise InvalidRequest(f"{server!r} is not the address of a server", "Give one such as: https://ntfy.example.org")
    if parts.scheme == "http" and not allow_private and not (host == "localhost" or is_loopback(host)):
        raise InvalidRequest(
            f"{server} is an address without TLS", "Give an https address, or add --allow-private to accept it."
        )
    return server.rstrip("/")
