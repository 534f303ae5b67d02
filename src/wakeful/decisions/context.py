"""From a turn's configuration to the frame its requests begin with: stable blocks first.

The frame is the same for every request of a turn, whatever rounds came before: it rests on the configuration alone.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, ToolItem, UserItem
from wakeful.contracts.frames import PromptContentBlock, ProviderPromptCache, ProviderPromptFrame
from wakeful.contracts.prompts import BLOCK_SEPARATOR
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.values import unchecked
from wakeful.decisions.compaction import advisory
from wakeful.decisions.kept_results import KeptResults
from wakeful.decisions.prompt import STABILITY, cut

_prompt_frame, _prompt_cache = unchecked(ProviderPromptFrame), unchecked(ProviderPromptCache)
_content_block = unchecked(PromptContentBlock)
_surfaces: KeptResults[str] = KeptResults(256)
"""Tools as models see them: agents of one kind have the same ones."""


class _FrameOfConfig(NamedTuple):
    """What is the same in the frames of all turns under a configuration."""

    key: str
    blocks: tuple[PromptContentBlock, ...]
    prompt: str


def frame_of(
    config: TurnConfig,
    agent_id: str,
    log_position: int,
    section: str = "",
    *,
    memory_revision: int = 0,
    compression_epoch: int = 0,
) -> ProviderPromptFrame:
    """The frame of a turn that begins at this position of the agent's log; `section` is of this run alone.

    The log is chained: a position in it stands for everything before, and the conversation is not hashed again.
    """
    key, blocks, prompt = _of_config(config)
    context = hashlib.sha256(f"{key}\n{agent_id}\n{log_position}".encode())
    if section:
        blocks = _blocks(config, section)
        prompt = _joined(blocks)
    return _prompt_frame(
        system_prompt=prompt,
        system_blocks=blocks,
        cache=_prompt_cache(
            agent_id=agent_id,
            prompt_cache_key=key,
            context_fingerprint=f"sha256:{context.hexdigest()}",
            working_memory_revision=memory_revision,
            compression_epoch=compression_epoch,
        ),
    )


def _of_config(config: TurnConfig) -> _FrameOfConfig:
    known: _FrameOfConfig | None = config.kept.get("frame")
    if known is None:
        blocks = _blocks(config, "")
        known = config.kept["frame"] = _FrameOfConfig(prompt_cache_key(config), blocks, _joined(blocks))
    return known


def _joined(blocks: Sequence[PromptContentBlock]) -> str:
    return BLOCK_SEPARATOR.join(block.text for block in blocks)


def _blocks(config: TurnConfig, section: str) -> tuple[PromptContentBlock, ...]:
    """The prompt, and what is of this run alone after it. A cache may end where the next block is less stable."""
    found = [(STABILITY[block.kind], block.text) for block in cut(config)]
    if section:
        found.append(("turn_scoped", section))
    after = [*(stability for stability, _ in found[1:]), "end"]
    return tuple(
        _content_block(
            text=text, stability=stability, cache_breakpoint=stability != "turn_scoped" and stability != following
        )
        for (stability, text), following in zip(found, after, strict=False)
    )


def _lasting(config: TurnConfig) -> str:
    """The prompt without what belongs to one turn alone, which comes last."""
    if not config.prompt_blocks:
        return config.instructions
    return BLOCK_SEPARATOR.join(block.text for block in cut(config) if STABILITY[block.kind] != "turn_scoped")


def prompt_cache_key(config: TurnConfig) -> str:
    """Rotates when the guidance or the tools change, and with nothing else: sessions of one agent share it."""
    tools = ", ".join([_surfaces.of((tool,), partial(_surface, tool)) for tool in config.tools])
    first, last = (
        json.dumps([config.agent_name, _lasting(config)]),
        json.dumps(config.injected_tool_args, sort_keys=True),
    )
    return "wk-" + hashlib.sha256(f"{first[:-1]}, [{tools}], {last}]".encode()).hexdigest()[:32]


def _surface(tool: ToolDeclaration) -> str:
    return json.dumps([tool.name, tool.description, tool.input_schema], sort_keys=True)


def advised(
    items: Sequence[UserItem | AssistantItem | ToolItem], first: int, used: Mapping[int, int], window: int
) -> list[UserItem | AssistantItem | ToolItem]:
    """The items from place `first` on, as the model is shown them."""
    shown: list[UserItem | AssistantItem | ToolItem] = []
    for place, item in enumerate(items, first):
        words = [Text(advisory(used[place], window))] if place in used else []
        if isinstance(item, AssistantItem):
            shown.append(item)
            if words and not item.calls:
                shown.append(UserItem(parts=tuple(words), origin="runtime"))
        elif isinstance(item, ToolItem) and words:
            before = place - 1
            if before in used and (place == first or isinstance(items[before - first], AssistantItem)):
                words.insert(0, Text(advisory(used[before], window)))
            shown.append(item.model_copy(update={"parts": (*item.parts, *words)}))
        else:
            shown.append(item)
    return shown
