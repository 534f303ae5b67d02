"""What a level's requests to a model are built from: nothing is built twice, and nothing is looked at twice."""

from collections.abc import MutableSequence
from functools import partial

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.conversation import AssistantItem, History, ToolItem, UserItem
from wakeful.contracts.frames import ProviderPromptFrame
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.compaction import context_tokens
from wakeful.decisions.context import advised, frame_of
from wakeful.decisions.evolve.models import LAST_CALL
from wakeful.decisions.kept_results import KeptResults
from wakeful.decisions.levels import Level
from wakeful.decisions.paged_list import PagedList
from wakeful.decisions.planner import plan_section
from wakeful.decisions.prompt_size import characters, tokens
from wakeful.engine.turn_work import TurnWork
from wakeful.gate.large_content import resolve

_lengths: KeptResults[int] = KeptResults(256)


def _length(tool: ToolDeclaration) -> int:
    return len(tool.name) + len(tool.description) + len(str(tool.input_schema))


class RequestPrompt:
    """The prompt of a level: its beginning, which stays the same, and the history, which is only added to."""

    def __init__(self, work: TurnWork, config: TurnConfig, level: Level) -> None:
        self._work = work
        self._config = config
        self._level_id = level.id
        self._compactions = level.conversation.compactions
        self.history = History()
        self._seen = 0
        """How many of the turn's items are in the history."""
        self._frame: ProviderPromptFrame | None = None
        self._characters: int | None = None
        """Of what stands before the conversation, where somebody asked."""

    def tokens(self, final: bool = False) -> int:
        """A guess at how long the next prompt is, or what the provider's own count of the last one comes to where that
        is more; only what is new is looked at."""
        config, level = self._config, self._work.state.level(self._level_id)
        self._begin_anew_after_compaction(level)
        if self._characters is None:
            self._characters = (
                len(config.instructions)
                + len(self._plan())
                + sum([_lengths.of((tool,), partial(_length, tool)) for tool in config.tools])
            )
        said = level.conversation.measure.of(level.conversation.items).characters
        last_words = characters([LAST_CALL]) if final and not level.next_request.told_last else 0
        guess = tokens(self._characters + said + characters(level.next_request.notes) + last_words)
        return max(guess, context_tokens(level) + tokens(last_words))

    def _begin_anew_after_compaction(self, level: Level) -> None:
        """The beginning was folded into a summary: what was built on it is built again."""
        if level.conversation.compactions != self._compactions:
            self._compactions = level.conversation.compactions
            self.history, self._seen, self._characters = History(), 0, None

    def frame(self) -> ProviderPromptFrame:
        """Made once: every request of a level begins the same."""
        if self._frame is None:
            work = self._work
            terms = work.state.terms
            self._frame = frame_of(
                self._config,
                work.place.claim.agent_id,
                work.place.claim.seen,
                self._plan(),
                memory_revision=terms.memory_revision,
                compression_epoch=terms.compression_epoch,
            )
        return self._frame

    def _plan(self) -> str:
        """What the executor is shown of the plan, where there is one."""
        plan = self._work.state.planning.plan if self._level_id is None else None
        return plan_section(plan) if plan is not None else ""

    async def extend(self) -> None:
        """Hand on what is new since the last request, whole: what stands behind references is fetched."""
        level = self._work.state.level(self._level_id)
        self._begin_anew_after_compaction(level)
        items, told = level.conversation.items, level.conversation.advised
        window = self._config.context_window
        new: MutableSequence[UserItem | AssistantItem | ToolItem]
        if told and window is not None:
            new = advised(items[self._seen :], self._seen, told, window)
        elif not self._seen and isinstance(items, PagedList):
            new = items.snapshot()  # what stands in pages is decoded by a model that looks at it
        else:
            new = list(items[self._seen :])
        seen, self._seen = self._seen, len(items)
        for place in reversed(level.conversation.measure.of(items).referring):
            if place < seen:
                break
            new[place - seen] = await resolve(new[place - seen], self._work.place.store.get_blob)
        if seen:
            self.history.extend(new)
        else:
            self.history = History.over(new)
