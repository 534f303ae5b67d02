"""`wakeful channel list|add|pair|test|remove`: phones that are told, and that decide."""

from difflib import get_close_matches
from typing import Annotated

import typer

from wakeful.contracts.channels import SERVERS, ChannelKind
from wakeful.service.operations.channels import (
    ADD_CHANNEL,
    LIST_CHANNELS,
    OPEN_PAIRING,
    PAIR_CHANNEL,
    REMOVE_CHANNEL,
    TEST_CHANNEL,
    ChannelName,
    NewChannel,
    PairingCode,
)
from wakeful.service.operations.operation import NoRequest
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import StoreAddress, ask, place_to_ask, place_to_fill
from wakeful.surfaces.cli.problems import WrongRequest
from wakeful.surfaces.cli.screen import columns
from wakeful.surfaces.cli.shown_values import age_cell, json_text, out, plain
from wakeful.views.channels import ChannelRecord, NewChannelRecord

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of the channel.")]


def listed(json: JsonOption = False, wide: WideOption = False, store: StoreOption = None) -> None:
    """List channels: whether a phone is paired, what it may do, and what came from strangers."""
    place = place_to_ask(store)
    found = ask(LIST_CHANNELS, NoRequest(), place)
    names = [each.channel for each in found]
    remember("channels", names, place, names)
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        out("no channels; add one: wakeful channel add ntfy")
    else:
        out(columns([_cells(each) for each in found], ("NAME", "KIND", "STATE", "MAY", "HEARD", "REFUSED"), wide=wide))
        out([f"{plain(each.channel)}: {plain(each.trouble)}" for each in found if each.trouble])
        unsent = [each for each in found if each.sent_error]
        out([f"{plain(each.channel)}: the last message was not sent: {plain(each.sent_error)}" for each in unsent])


def add(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="ntfy or telegram.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the channel.")] = "phone",
    server: Annotated[
        str | None,
        typer.Option("--server", metavar="URL", help="The server, if not the public one."),
    ] = None,
    token_env: Annotated[
        str | None,
        typer.Option("--token-env", metavar="NAME", help="The variable that holds the token; see secrets.env."),
    ] = None,
    may: Annotated[
        list[str] | None,
        typer.Option("--may", metavar="SCOPE", help="decide or send. Repeatable. Default: decide."),
    ] = None,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="The server may be on this network, and without TLS.")
    ] = False,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Add a channel, and open it for pairing for ten minutes. The running daemon sends the phone a code."""
    place = place_to_fill(store)
    scopes = tuple(may or ("decide",))
    request = NewChannel(_kind(kind), name, server, token_env, scopes, allow_private)
    made = ask(ADD_CHANNEL, request, place)
    _opened(made, place, json, f"channel {plain(made.channel)} is added")


def pair(
    name: NameArgument,
    code: Annotated[str | None, typer.Argument(metavar="CODE", help="The code that the phone shows.")] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Pair the phone that shows a code. Without a code, the phone is sent one."""
    place = place_to_ask(store)
    if code is None:
        made = ask(OPEN_PAIRING, ChannelName(name), place)
        _opened(made, place, json, f"channel {plain(name)} is open for pairing")
        return
    record = ask(PAIR_CHANNEL, PairingCode(name, code), place)
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
        return
    out(
        [
            f"channel {plain(record.channel)} is paired: it may {', '.join(record.scopes)}, as {plain(record.caller)}",
            "agents that say nothing else notify it",
            f"to try it: wakeful channel test {plain(record.channel)}{place.flag}",
        ]
    )


def test(name: NameArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Have the running daemon send a message with a button. wakeful channel list shows when it was pressed."""
    place = place_to_ask(store)
    record = ask(TEST_CHANNEL, ChannelName(name), place)
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
    else:
        out(f"a test is stored; press OK on the phone, then see: wakeful channel list{place.flag}")


def remove(name: NameArgument, json: JsonOption = False, store: StoreOption = None) -> None:
    """Remove a channel. Nothing more is sent to its phone, and nothing from there is accepted."""
    record = ask(REMOVE_CHANNEL, ChannelName(name), place_to_ask(store))
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
    else:
        out(f"channel {plain(record.channel)} is removed")


def _opened(made: NewChannelRecord, place: StoreAddress, json: bool, told: str) -> None:
    if json:
        out(json_text(made.model_dump(mode="json"), indent=2))
        return
    if made.subscribe is not None:
        steps = [
            "1. subscribe to this topic in the ntfy app; the address is secret, like a password",
            f"   {plain(made.subscribe)}",
            "2. type the code that arrives there, within ten minutes",
        ]
    else:
        steps = ["1. send /start to your bot; it answers with a code", "2. type that code, within ten minutes"]
    again = f"wakeful channel pair {plain(made.channel)}"
    out([told, *steps, f"   {again} CODE{place.flag}", f"another code: {again}{place.flag}"])


def _kind(given: str) -> ChannelKind:
    for kind in SERVERS:
        if kind == given:
            return kind
    near = get_close_matches(given, SERVERS, n=1)
    hint = (
        f"did you mean {near[0]}?" if near else f"there are: {', '.join(SERVERS)}; others: see [notify] of wakeful.toml"
    )
    raise WrongRequest(f"there is no kind of channel {given!r}", hint)


def _cells(record: ChannelRecord) -> tuple[str, ...]:
    heard = age_cell(int(record.heard_at * 1e6)) if record.heard_at is not None else "-"
    refused = f"{record.refused} codes, {record.strangers} strangers" if record.refused or record.strangers else "-"
    return plain(record.channel), record.kind, record.state, ", ".join(record.scopes), heard, refused
