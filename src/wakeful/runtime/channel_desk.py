"""The channels of a runtime: listened to in the background, and what is due for them done."""

from wakeful.contracts.notices import NotifyTarget
from wakeful.engine.run_request import Engine
from wakeful.ports import WakeRow
from wakeful.ports.notices import NoticeRow
from wakeful.runtime.channel_listening import CarryOut, ChannelListening, Connect
from wakeful.runtime.channel_messages import ChannelMessages, Delivery


class ChannelDesk:
    """Channels at work."""

    def __init__(self, engine: Engine, connect: Connect, carry_out: CarryOut) -> None:
        self._store = engine.store
        self._messages = ChannelMessages(engine, connect)
        self._listening = ChannelListening(engine, connect, carry_out, self._messages.tell)

    async def run(self) -> None:
        """Listen until it is cancelled."""
        await self._listening.run()

    async def deliver(self, row: NoticeRow, name: str) -> Delivery:
        return await self._messages.deliver(row, name)

    async def work(self, wake: WakeRow) -> None:
        """Do what is due."""
        match wake.subject.split(":", 2)[1]:
            case "input":
                await self._listening.settle(wake)
            case "decided":
                await self._messages.close(wake)
            case _:
                await self._messages.say(wake)

    async def default_target(self) -> NotifyTarget | None:
        """Where notices go of agents that say nothing else: to the phone that was paired first."""
        paired = [row for row in await self._store.channels() if row.state == "paired"]
        return NotifyTarget(to=f"channel:{paired[0].name}") if paired else None
