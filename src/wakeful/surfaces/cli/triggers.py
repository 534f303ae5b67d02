"""`wakeful trigger`: addresses at which programs outside wake an agent.

None of these needs the process that runs the agents: it finds what was asked, or delivered, in the log.
"""

import sys
from typing import Annotated

import typer

from wakeful.contracts.errors import InvalidRequest
from wakeful.contracts.triggers import Signature
from wakeful.service.operations.agents import AgentName
from wakeful.service.operations.triggers import (
    CREATE_TRIGGER,
    DELIVER,
    LIST_TRIGGERS,
    REVOKE_TRIGGER,
    ROTATE_TRIGGER,
    SHOW_TRIGGER_URL,
    NewTrigger,
    TriggerAddress,
    TriggerChange,
    TriggerDelivery,
)
from wakeful.surfaces.cli.agent_control import LoggedReasonOption
from wakeful.surfaces.cli.last_list import remember
from wakeful.surfaces.cli.options import JsonOption, StoreOption, WideOption
from wakeful.surfaces.cli.places import ask, place_to_ask
from wakeful.surfaces.cli.screen import columns, prose
from wakeful.surfaces.cli.shown_values import age_cell, json_text, one_line, out, plain
from wakeful.views.trigger_records import DeliveryReceipt, TriggerRecord

TriggerArgument = Annotated[
    str,
    typer.Argument(
        metavar="TRIGGER", help="Its id or its beginning, AGENT/NAME, or AGENT for the agent's default trigger."
    ),
]
REFUSED = 1
"""The exit status of a delivery that was refused."""


def listed(
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="One agent. Default: all agents.")] = None,
    json: JsonOption = False,
    wide: WideOption = False,
    store: StoreOption = None,
) -> None:
    """List triggers: what they do, what came through them, and what was refused. Addresses are not shown."""
    place = place_to_ask(store)
    found = ask(LIST_TRIGGERS, AgentName(agent), place)
    remember("triggers", [each.external_trigger_id for each in found], place, [each.target_agent_id for each in found])
    if json:
        out(json_text([each.model_dump(mode="json") for each in found], indent=2))
    elif not found:
        prose("no triggers yet; every agent of a runtime has one")
    else:
        titles = ("TRIGGER", "STATE", "MODE", "SIGNED", "DELIVERED", "LAST", "REFUSED")
        out(columns([_cells(each) for each in found], titles, wide=wide))


def create(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent's name.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The trigger's name. Default: the default one.")] = "",
    say: Annotated[str, typer.Option("--say", metavar="TEXT", help="Words for the agent at a delivery.")] = "",
    thread: Annotated[
        str, typer.Option("--thread", metavar="NAME", help="The conversation; fresh: a new one.")
    ] = "main",
    signature: Annotated[
        Signature | None, typer.Option("--signature", metavar="KIND", help="hub_sha256 or standard_webhooks.")
    ] = None,
    signing_env: Annotated[
        str | None,
        typer.Option("--signing-env", metavar="VARIABLE", help="The variable that holds the sender's secret."),
    ] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Create a trigger. wakeful trigger url shows its address."""
    if (signature is None) != (signing_env is None):
        given = "--signature" if signing_env is None else "--signing-env"
        raise InvalidRequest(
            f"{given} was given alone", "give both: --signature hub_sha256 --signing-env NAME_OF_A_VARIABLE"
        )
    place = place_to_ask(store)
    record = ask(CREATE_TRIGGER, NewTrigger(agent, name, say, thread, signature, signing_env), place)
    _told(record, json, f"trigger {_name(record)} is active", f"wakeful trigger url {_name(record)}{place.flag}")


def rotate(
    trigger: TriggerArgument,
    reason: LoggedReasonOption = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Give a trigger a new address. The old one is refused from now on."""
    place = place_to_ask(store)
    record = ask(ROTATE_TRIGGER, TriggerChange(trigger, reason=reason), place)
    words = f"trigger {_name(record)} has a new address (number {record.generation})"
    _told(record, json, words, f"wakeful trigger url {_name(record)}{place.flag}")


def revoke(
    trigger: TriggerArgument,
    reason: LoggedReasonOption = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Revoke a trigger: its address is refused. Its deliveries stay in the log."""
    record = ask(REVOKE_TRIGGER, TriggerChange(trigger, reason=reason), place_to_ask(store))
    _told(record, json, f"trigger {_name(record)} is revoked")


def url(
    trigger: TriggerArgument,
    base: Annotated[
        str, typer.Option("--base", metavar="URL", help="Where the runtime is reached: https://hooks.example.org")
    ] = "",
    purpose: Annotated[
        str, typer.Option("--purpose", metavar="TEXT", help="The reader it is for; kept in the log.")
    ] = "",
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show the address of a trigger. Keep it secret: anyone with it can wake the agent. The log says you saw it."""
    found = ask(SHOW_TRIGGER_URL, TriggerAddress(trigger, purpose=purpose, base=base), place_to_ask(store))
    out(json_text(found.model_dump(mode="json"), indent=2) if json else found.trigger_url)


def deliver(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The trigger's URL, or the last part of it.")],
    body: Annotated[str | None, typer.Option("--body", metavar="TEXT", help="The body; -: standard input.")] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="NAME:VALUE", help="A header; may be repeated.")
    ] = None,
    json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Deliver to a trigger by hand, as a program outside would: to try it, or from a script on this machine."""
    raw = sys.stdin.buffer.read() if body == "-" else (body or "").encode()
    asked = TriggerDelivery(address, raw, _headers(header or []))
    receipt = ask(DELIVER, asked, place_to_ask(store))
    if json:
        out(json_text(receipt.model_dump(mode="json"), indent=2))
    else:
        prose(_receipt_words(receipt))
    if receipt.outcome == "refused":
        raise typer.Exit(REFUSED)


def _headers(given: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            raise InvalidRequest(f"--header {each!r} is not a header", "Write it as NAME:VALUE.")
        found[name.strip()] = value.strip()
    return found


def _receipt_words(receipt: DeliveryReceipt) -> str:
    became = receipt.message_id or receipt.hint_id or ""
    agent = plain(receipt.target_agent_id or "")
    match receipt.outcome:
        case "accepted":
            return f"accepted: {became} is stored for agent {agent}"
        case "duplicate":
            return f"duplicate: it was delivered before, as {became} for agent {agent}"
        case "refused":
            return f"refused ({receipt.reason}): {plain(receipt.message)}"


def _cells(record: TriggerRecord) -> tuple[str, ...]:
    refused = ", ".join(f"{number} {reason}" for reason, number in record.refused.items())
    last = age_cell(int(record.last_delivered_at * 1e6)) if record.last_delivered_at is not None else "-"
    signed = record.signature or "-"
    mode = "hint" if record.delivery_mode == "wake_hint" else "message"
    return _name(record), record.status, mode, signed, str(record.delivery_count), last, one_line(refused or "-", 200)


def _name(record: TriggerRecord) -> str:
    return plain(f"{record.target_agent_id}/{record.name}" if record.name else record.target_agent_id)


def _told(record: TriggerRecord, json: bool, words: str, next_line: str = "") -> None:
    if json:
        out(json_text(record.model_dump(mode="json"), indent=2))
    else:
        out([words, *([f"its address: {next_line}"] if next_line else [])])
