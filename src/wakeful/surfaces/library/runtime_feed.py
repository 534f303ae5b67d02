"""What a `Runtime` shows of all its agents: the feed of what operators see, conversations with them, and phones."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from wakeful.surfaces.library.argument_checks import checked_arguments
from wakeful.surfaces.library.tool_refusals import open_to_tools

if TYPE_CHECKING:
    from wakeful.service.living_runtime import LivingRuntime
    from wakeful.service.operations.operation import OpenStore
    from wakeful.service.queries.operator_feed import FeedReader
    from wakeful.surfaces.library.channels_handle import ChannelsHandle
    from wakeful.views.presentation.display_modes import DisplayMode
    from wakeful.views.presentation.feed_entries import FeedEntry, TranscriptLine
    from wakeful.views.presentation.replayed_events import ReplayedEvent


@checked_arguments
@open_to_tools("feed", "tail", "replayed", "transcript")
class RuntimeFeed:
    """What `Runtime` does with the feed over all agents."""

    _feed_reader: "FeedReader | None" = None
    """One for all followers of this runtime."""

    @property
    def channels(self) -> "ChannelsHandle":
        """Phones that are told and that decide: `await rt.channels.list()`, and `add`, `pair`, `test`, `remove`."""
        from wakeful.surfaces.library.channels_handle import ChannelsHandle

        return ChannelsHandle(self._here.engine)

    async def feed(
        self, after: str | None = None, *, follow: bool = False, display: "DisplayMode" = "verbose"
    ) -> "AsyncIterator[FeedEntry]":
        """Entries for operators about all agents, in the order in which they were stored: each has its `cursor`.

        With `after`, what comes behind that cursor; else everything that is kept. With `follow`, new entries are
        yielded as they are stored: no gap, each once. `display="info"` gives results alone. Raises CursorGone when
        entries behind the cursor have left (`Retention.feed`).
        """
        from wakeful.bootstrap.keys import own_keys
        from wakeful.service.queries.operator_feed import FeedReader
        from wakeful.service.queries.shared_tails import PAGE

        if self._feed_reader is None:
            self._feed_reader = FeedReader(self._here.engine.store, keys=own_keys())
        reader = self._feed_reader
        if follow:
            async for entry in reader.follow(after, display=display):
                yield entry
            return
        while page := await reader.page(after, limit=PAGE, display=display):
            for entry in page:
                yield entry
            after = page[-1].cursor

    async def tail(
        self, agent: str | None = None, *, limit: int = 20, display: "DisplayMode" = "info"
    ) -> "list[FeedEntry]":
        """The newest entries of the feed, of one agent or of all, the oldest of them first. Raises AgentNotFound."""
        from wakeful.service.operations.operator_feed import SHOW_TAIL, TailQuery

        return await SHOW_TAIL.handler(self._opened, TailQuery(agent, limit, display))

    async def replayed(self, agent: str, *, after: int = 0, limit: int = 100) -> "list[ReplayedEvent]":
        """An agent's events behind an `event_seq`, each with its provenance in an envelope apart from its payload."""
        from wakeful.service.operations.operator_feed import REPLAY_EVENTS, ReplayQuery

        return await REPLAY_EVENTS.handler(self._opened, ReplayQuery(agent, after, limit))

    async def transcript(self, agent: str, *, thread: str | None = None, turns: int = 20) -> "list[TranscriptLine]":
        """An agent's conversation with its operator: messages and briefs of the newest `turns`, the oldest first, with
        the failures of providers between them, and what became of each. Raises AgentNotFound.
        """
        from wakeful.service.operations.operator_feed import SHOW_TRANSCRIPT, TranscriptQuery

        return await SHOW_TRANSCRIPT.handler(self._opened, TranscriptQuery(agent, thread, turns))

    @property
    def _opened(self) -> "OpenStore":
        """The store of this runtime, for operations that only read it."""
        from wakeful.bootstrap.keys import own_keys
        from wakeful.service.operations.operation import OpenStore

        engine = self._here.engine
        return OpenStore(engine.store, lambda store: engine, own_keys)

    @property
    def _here(self) -> "LivingRuntime":
        raise NotImplementedError
