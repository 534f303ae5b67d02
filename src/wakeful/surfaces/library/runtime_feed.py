"""What a `Runtime` shows of all its agents: the feed of what operators see, and conversations with them."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful.service.living_runtime import LivingRuntime
    from wakeful.service.queries.operator_feed import FeedReader
    from wakeful.views.presentation.display_modes import DisplayMode
    from wakeful.views.presentation.feed_entries import FeedEntry, TranscriptLine


class RuntimeFeed:
    """What `Runtime` does with the feed over all agents."""

    _feed_reader: "FeedReader | None" = None
    """One for all followers of this runtime."""

    async def feed(
        self, after: str | None = None, *, follow: bool = False, display: "DisplayMode" = "verbose"
    ) -> "AsyncIterator[FeedEntry]":
        """What operators see of all agents, in the order in which it was stored: each entry has its `cursor`.

        With `after`, what comes behind that cursor; else everything that is kept. With `follow`, new entries are
        yielded as they are stored: no gap, each once. `display="info"` gives results alone. Raises CursorGone when
        entries behind the cursor have left (`Retention.feed`).
        """
        from wakeful.bootstrap import own_keys
        from wakeful.service.queries.operator_feed import PAGE, FeedReader
        from wakeful.views.presentation.display_modes import display_mode

        results = display_mode(display) == "info"
        if self._feed_reader is None:
            self._feed_reader = FeedReader(self._here.engine.store, keys=own_keys())
        reader = self._feed_reader
        if follow:
            async for entry in reader.follow(after, results=results):
                yield entry
            return
        while page := await reader.page(after, limit=PAGE, results=results):
            for entry in page:
                yield entry
            after = page[-1].cursor

    async def transcript(self, agent: str, *, thread: str | None = None, turns: int = 20) -> "list[TranscriptLine]":
        """An agent's conversation with its operator: messages and briefs of the newest `turns`, the oldest first, with
        the failures of providers between them, and what became of each. Raises AgentNotFound.
        """
        from wakeful.bootstrap import own_keys
        from wakeful.service.queries.agent_transcript import transcript_of

        return await transcript_of(self._here.engine.store, agent, thread=thread, turns=turns, keys=own_keys())

    @property
    def _here(self) -> "LivingRuntime":
        raise NotImplementedError
