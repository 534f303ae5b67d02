"""Phones in a program: add a channel, pair it, try it, have it forgotten."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful.contracts.channels import ChannelKind
from wakeful.surfaces.library.argument_checks import checked_arguments
from wakeful.surfaces.library.tool_refusals import open_to_tools

if TYPE_CHECKING:
    from wakeful.service import Engine
    from wakeful.views.channels import ChannelRecord, NewChannelRecord


@checked_arguments
@open_to_tools("list")
class ChannelsHandle:
    """The channels of a runtime: `rt.channels`.

        made = await rt.channels.add("ntfy", "phone")
        print("subscribe to", made.subscribe)         # the runtime sends a code there
        await rt.channels.pair("phone", input("code: "))
        await rt.channels.test("phone")

    The runtime that is open sends and listens. Decisions of a phone are recorded as `channel:KIND:NAME`.
    """

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    async def list(self) -> "list[ChannelRecord]":
        """Channels, the oldest first: whether a phone is paired, what it may do, and what came from strangers."""
        from wakeful.service.commands.channels import list_channels

        return await list_channels(self._engine.store)

    async def add(
        self,
        kind: ChannelKind,
        name: str = "phone",
        *,
        server: str | None = None,
        token_env: str | None = None,
        may: Sequence[str] = ("decide",),
        allow_private: bool = False,
        by: str = "program",
    ) -> "NewChannelRecord":
        """Add a channel, `ntfy` or `telegram`, and open it for pairing for ten minutes.

        `token_env` names the variable with the token of the service. `may` is `decide`, `send`, or both. Of ntfy,
        `subscribe` of the record is the secret address for the phone. Raises InvalidRequest.
        """
        from wakeful.service.commands.channels import add_channel

        return await add_channel(
            self._engine,
            kind,
            name,
            server=server,
            token_env=token_env,
            scopes=tuple(may),
            allow_private=allow_private,
            by=by,
        )

    async def open_pairing(self, name: str, *, by: str = "program") -> "NewChannelRecord":
        """Have the phone shown another code, or another phone paired. Raises InvalidRequest."""
        from wakeful.service.commands.channels import open_pairing

        return await open_pairing(self._engine, name, by=by)

    async def pair(self, name: str, code: str, *, by: str = "program") -> "ChannelRecord":
        """Pair the phone that shows this code. Raises InvalidRequest for a code that no phone was shown."""
        from wakeful.service.commands.channels import pair_channel

        return await pair_channel(self._engine, name, code, by=by)

    async def test(self, name: str, *, by: str = "program") -> "ChannelRecord":
        """Have a message with a button sent. `heard_at` of the channel says when it was pressed. Raises
        InvalidRequest."""
        from wakeful.service.commands.channels import request_channel_test

        return await request_channel_test(self._engine, name, by=by)

    async def remove(self, name: str, *, by: str = "program") -> "ChannelRecord":
        """Send nothing there any more, and hear nothing. Topics and codes of it are void. Raises InvalidRequest."""
        from wakeful.service.commands.channels import remove_channel

        return await remove_channel(self._engine, name, by=by)
