"""The feed over all agents, followed: it comes back with its cursor when the process was away, and writes nothing."""

import asyncio
from collections.abc import Callable

from wakeful.contracts.errors import WakefulError
from wakeful.service.serving.daemon_client import ControlRefused, NoAnswer
from wakeful.surfaces.tui.conversation import Activity, AgentConversation
from wakeful.surfaces.tui.home_client import HomeClient
from wakeful.views.presentation.feed_entries import FeedEntry

AWAY_SECONDS = 0.5


class FeedFollower:
    """What was said to and by each agent, and what its newest message led to."""

    def __init__(
        self,
        client: HomeClient,
        *,
        heard: Callable[[], None],
        connected: Callable[[bool], None],
        failed: Callable[[WakefulError], None],
    ) -> None:
        self._client = client
        self._heard, self._connected, self._failed = heard, connected, failed
        self._conversations: dict[str, AgentConversation] = {}
        self._activities: dict[str, Activity] = {}
        self.cursor: str | None = None
        self._begun = False

    def conversation(self, agent: str) -> AgentConversation:
        return self._conversations.setdefault(agent, AgentConversation(agent))

    def activity(self, agent: str) -> Activity:
        return self._activities.setdefault(agent, Activity())

    async def follow(self) -> None:
        """For ever."""
        while True:
            try:
                await self._follow_once()
            except NoAnswer:
                pass
            except ControlRefused as refused:
                if refused.status == 410:  # the feed no longer has what comes after the cursor
                    self._begun, self.cursor = False, None
                else:
                    self._failed(refused)
            except WakefulError as error:
                self._failed(error)
            self._connected(False)
            await asyncio.sleep(AWAY_SECONDS)

    async def _follow_once(self) -> None:
        if not self._begun:
            for entry in await self._client.tail():
                self._take(entry)
            self._begun = True
        self._connected(True)
        async for entry in self._client.feed(self.cursor):
            self._take(entry)
            self._heard()

    def _take(self, entry: FeedEntry) -> None:
        name = entry.envelope.agent_id
        self.cursor = entry.cursor
        self.conversation(name).take(entry)
        self.activity(name).take(entry)
