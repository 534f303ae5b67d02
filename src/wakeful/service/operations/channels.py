"""What may be asked about channels: to add one, pair a phone, test it, remove it; and which there are."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.contracts.channels import ChannelKind
from wakeful.service.operations.operation import NoRequest, OpenStore, Operation, check_no_tool

if TYPE_CHECKING:
    from wakeful.views.channels import ChannelRecord, NewChannelRecord

_RECORD = "wakeful.views.channels.ChannelRecord"
_NEW = "wakeful.views.channels.NewChannelRecord"


@dataclass(frozen=True, slots=True)
class NewChannel:
    """A channel to add, and who wants it."""

    kind: ChannelKind
    """The service that it goes through."""
    channel: str
    """Its name."""
    server: str | None = None
    """Another server than the public one."""
    token_env: str | None = None
    """The variable that holds the token."""
    scopes: tuple[str, ...] = ("decide",)
    """What its phones may do."""
    allow_private: bool = False
    """Its server may be on a private network."""
    by: str = ""


@dataclass(frozen=True, slots=True)
class ChannelName:
    """A channel, and who wants something of it."""

    channel: str
    by: str = ""


@dataclass(frozen=True, slots=True)
class PairingCode:
    """The code that a phone shows, and who typed it."""

    channel: str
    code: str
    by: str = ""


async def _list(opened: OpenStore, asked: NoRequest) -> "list[ChannelRecord]":
    from wakeful.service.commands.channels import list_channels

    return await list_channels(opened.store)


async def _add(opened: OpenStore, asked: NewChannel) -> "NewChannelRecord":
    from wakeful.service.commands.channels import add_channel

    check_no_tool("a channel")
    return await add_channel(
        opened.engine,
        asked.kind,
        asked.channel,
        server=asked.server,
        token_env=asked.token_env,
        scopes=asked.scopes,
        allow_private=asked.allow_private,
        by=asked.by,
    )


async def _open_pairing(opened: OpenStore, asked: ChannelName) -> "NewChannelRecord":
    from wakeful.service.commands.channels import open_pairing

    check_no_tool("a channel")
    return await open_pairing(opened.engine, asked.channel, by=asked.by)


async def _pair(opened: OpenStore, asked: PairingCode) -> "ChannelRecord":
    from wakeful.service.commands.channels import pair_channel

    check_no_tool("a channel")
    return await pair_channel(opened.engine, asked.channel, asked.code, by=asked.by)


async def _test(opened: OpenStore, asked: ChannelName) -> "ChannelRecord":
    from wakeful.service.commands.channels import request_channel_test

    return await request_channel_test(opened.engine, asked.channel, by=asked.by)


async def _remove(opened: OpenStore, asked: ChannelName) -> "ChannelRecord":
    from wakeful.service.commands.channels import remove_channel

    check_no_tool("a channel")
    return await remove_channel(opened.engine, asked.channel, by=asked.by)


LIST_CHANNELS = Operation("runtime.channels", "observe", NoRequest, _RECORD, _list, many=True)
ADD_CHANNEL = Operation("runtime.add_channel", "operate", NewChannel, _NEW, _add, is_secret=True)
OPEN_PAIRING = Operation("runtime.open_pairing", "operate", ChannelName, _NEW, _open_pairing, is_secret=True)
PAIR_CHANNEL = Operation("runtime.pair_channel", "operate", PairingCode, _RECORD, _pair)
TEST_CHANNEL = Operation("runtime.test_channel", "operate", ChannelName, _RECORD, _test)
REMOVE_CHANNEL = Operation("runtime.remove_channel", "operate", ChannelName, _RECORD, _remove)
