"""A phone that `wakeful init` pairs: the token of a bot, the address to subscribe to, the code that is typed."""

import os
from typing import Final, NamedTuple

import typer

from wakeful.contracts.errors import InvalidRequest
from wakeful.service.operations.channels import (
    ADD_CHANNEL,
    LIST_CHANNELS,
    OPEN_PAIRING,
    PAIR_CHANNEL,
    ChannelName,
    NewChannel,
    PairingCode,
)
from wakeful.service.operations.operation import NoRequest
from wakeful.service.serving.run_files import SECRETS, home_folder, read_secrets
from wakeful.service.setup_files import PhoneToPair
from wakeful.surfaces.cli.places import StoreAddress, ask
from wakeful.surfaces.cli.problems import NeedsPerson, note
from wakeful.surfaces.cli.shown_values import plain

NAME: Final = "phone"
TOKEN_VARIABLE: Final = "TELEGRAM_TOKEN"
TRIES: Final = 3


class PhoneState(NamedTuple):
    """A phone after `wakeful init`."""

    channel: str
    kind: str
    subscribe: str | None
    """Of ntfy: the secret address."""
    is_paired: bool
    steps: tuple[str, ...]
    """Lines that are left to type."""


def bot_token(phone: PhoneToPair | None, *, attended: bool, replace: bool) -> str:
    """The token to keep; blank where none is needed or `secrets.env` has one that stays. Raises NeedsPerson."""
    if phone is None or phone.kind != "telegram":
        return ""
    kept, found = read_secrets().get(TOKEN_VARIABLE), os.environ.get(TOKEN_VARIABLE, "")
    if kept and not (replace and found):
        return ""
    if found:
        return found
    if not attended:
        raise NeedsPerson(
            "a Telegram bot needs its token",
            f"get one from @BotFather, then set {TOKEN_VARIABLE}, or write it to {home_folder() / SECRETS} (chmod 600)",
        )
    words = f"Token of your bot, from @BotFather ({TOKEN_VARIABLE}; it is not shown)"
    return str(typer.prompt(words, hide_input=True, err=True)).strip()


def pair_phone(phone: PhoneToPair, place: StoreAddress, *, attended: bool) -> PhoneState:
    """Add the phone, and at a terminal ask for its code. Raises InvalidRequest for a server that is none."""
    there = {each.channel: each for each in ask(LIST_CHANNELS, NoRequest(), place)}
    if NAME in there and there[NAME].kind == phone.kind and there[NAME].state == "paired":
        return PhoneState(NAME, phone.kind, None, True, ())
    if NAME in there and there[NAME].kind == phone.kind:
        made = ask(OPEN_PAIRING, ChannelName(NAME), place)
    else:
        token = TOKEN_VARIABLE if phone.kind == "telegram" else None
        made = ask(ADD_CHANNEL, NewChannel(phone.kind, NAME, phone.server, token), place)
    first: tuple[str, ...]
    if made.subscribe is not None:
        first = ("subscribe to this topic in the ntfy app; the address is secret:", f"  {plain(made.subscribe)}")
    else:
        first = ("send /start to your bot; it answers with a code",)
    if attended:
        for line in first:
            note(line)
    is_paired = attended and _is_typed(place)
    steps = () if is_paired else (*first, f"wakeful channel pair {NAME} CODE", "wakeful notify test main")
    return PhoneState(NAME, phone.kind, made.subscribe, is_paired, steps)


def _is_typed(place: StoreAddress) -> bool:
    """Ask for the code that the phone shows, a few times."""
    for _ in range(TRIES):
        code = str(typer.prompt("The code that arrives (empty: later)", default="", show_default=False, err=True))
        if not code.strip():
            return False
        try:
            ask(PAIR_CHANNEL, PairingCode(NAME, code), place)
        except InvalidRequest as refused:
            note(f"{refused.message}. {refused.hint or ''}")
        else:
            return True
    return False
