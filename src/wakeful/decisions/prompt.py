"""From what is known when a turn begins to its system prompt: the order of its parts, and how it is cut again.

The order is fixed: the runtime's policy, the mode of the turn, what the agent is told, what the workspace says, how
skills are used, how tools are used. What belongs to one turn alone comes last, so that everything before it is the same
from turn to turn. An agent that has none of it keeps its instructions as they are, to the letter.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.prompts import BLOCK_SEPARATOR, BlockKind, PromptBlock, Stability
from wakeful.contracts.skills import ActiveSkill, SkillEntry
from wakeful.decisions import prompt_words

STABILITY: dict[BlockKind, Stability] = {
    "runtime_policy": "stable",
    "mode": "stable",
    "agent_instructions": "agent_scoped",
    "agent_guidance": "agent_scoped",
    "workspace_guidance": "agent_scoped",
    "skills": "agent_scoped",
    "tools": "agent_scoped",
    "working_memory": "agent_scoped",
    "active_skills": "turn_scoped",
    "work_items": "turn_scoped",
    "memories": "turn_scoped",
}
"""Every kind of block, in the order of the prompt."""


class Guidance(NamedTuple):
    """A file of guidance, or as much of it as is shown."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptParts:
    """What a root prompt is put together from."""

    instructions: str = ""
    """The agent's own, as its program gave them."""
    belt: Collection[str] = ()
    """The names of the tools that are offered."""
    works_on_files: bool = False
    """It has a workspace, or a profile other than `chat`."""
    agent_guidance: Guidance | None = None
    workspace_guidance: Guidance | None = None
    skills: Sequence[SkillEntry] = ()
    active: Sequence[ActiveSkill] = ()
    work_items: str = ""
    """What the turn is shown of the agent's work items."""
    working_memory: str = ""
    """The agent's working memory as of its last episode or compaction."""
    memories: str = ""
    """What was found in its memory for the turn's message."""
    long_term_memory: bool = False
    max_depth: int | None = 3
    """How deep subtasks may split; None: as deep as they like."""


class Block(NamedTuple):
    """A block with its words."""

    kind: BlockKind
    text: str
    source: str | None = None


class AssembledPrompt(NamedTuple):
    """A system prompt, and what it is made of."""

    text: str
    blocks: tuple[PromptBlock, ...]


def root_blocks(parts: PromptParts) -> list[Block]:
    """The parts of a root turn's prompt, in order."""
    blocks = [
        Block("runtime_policy", prompt_words.policy(parts.belt) if parts.works_on_files else ""),
        Block("mode", _mode(parts)),
        Block("agent_instructions", parts.instructions),
    ]
    if parts.agent_guidance is not None:
        said = prompt_words.guidance("agent", *parts.agent_guidance)
        blocks.append(Block("agent_guidance", said, parts.agent_guidance.path))
    if parts.workspace_guidance is not None:
        said = prompt_words.guidance("workspace", *parts.workspace_guidance)
        blocks.append(Block("workspace_guidance", said, parts.workspace_guidance.path))
    blocks += [
        Block("skills", prompt_words.skills(parts.skills)),
        Block("tools", prompt_words.tools(parts.belt) if parts.works_on_files else ""),
        Block("working_memory", parts.working_memory),
        Block("active_skills", prompt_words.active_skills(parts.active)),
        Block("work_items", parts.work_items),
        Block("memories", parts.memories),
    ]
    return blocks


def _mode(parts: PromptParts) -> str:
    return prompt_words.root(parts.belt, long_term_memory=parts.long_term_memory, max_depth=parts.max_depth)


def assembled(blocks: Iterable[Block]) -> AssembledPrompt:
    """The prompt. Of an agent that has nothing but its instructions there is nothing to say about blocks."""
    said = [block for block in blocks if block.text]
    if all(block.kind == "agent_instructions" for block in said):
        return AssembledPrompt("".join(block.text for block in said), ())
    return AssembledPrompt(
        BLOCK_SEPARATOR.join(block.text for block in said),
        tuple(
            PromptBlock(
                kind=block.kind,
                stability=STABILITY[block.kind],
                length=len(block.text),
                source=block.source,
                digest="sha256:" + hashlib.sha256(block.text.encode("utf-8", "replace")).hexdigest(),
            )
            for block in said
        ),
    )


def cut(config: TurnConfig) -> list[Block]:
    """The prompt of a turn as its blocks again."""
    if not config.prompt_blocks:
        return [Block("agent_instructions", config.instructions)] if config.instructions else []
    found, at = [], 0
    for block in config.prompt_blocks:
        found.append(Block(block.kind, config.instructions[at : at + block.length], block.source))
        at += block.length + len(BLOCK_SEPARATOR)
    return found


def own_instructions(config: TurnConfig) -> str:
    """What the agent's own program said, without what the runtime put around it."""
    return "".join(block.text for block in cut(config) if block.kind == "agent_instructions")


def taken_up(before: TurnConfig, parts: PromptParts) -> AssembledPrompt:
    """The prompt of a turn that goes on: what was read from outside stays as it was when the turn began.

    What follows from the agent's own code (its instructions, the tools it has) is said as the code is today.
    """
    was = {block.kind: block for block in cut(before)}
    now = {block.kind: block for block in root_blocks(parts)}
    outside: tuple[BlockKind, ...] = (
        "agent_guidance",
        "workspace_guidance",
        "skills",
        "working_memory",
        "active_skills",
        "work_items",
        "memories",
    )
    kinds: list[BlockKind] = list(STABILITY)
    return assembled(found for kind in kinds if (found := (was if kind in outside else now).get(kind)) is not None)


def level_prompt(
    parent: TurnConfig, belt: Collection[str], *, splits: bool, structured: bool = False, system_prompt: str = ""
) -> AssembledPrompt:
    """The system prompt of a child: its own mode, and of its parent's prompt what holds for it too.

    The agent's own instructions are for whoever talks to the user and stay with the root; `system_prompt` is what the
    parent said in their place. `splits`: there is room for children of its own. No line names a tool that it has not.
    """
    inherited = {block.kind: block for block in cut(parent)}
    blocks = [
        Block("runtime_policy", prompt_words.policy(belt) if "runtime_policy" in inherited else ""),
        Block("mode", prompt_words.subtask(belt, splits=splits, structured=structured)),
        Block("agent_instructions", system_prompt),
        *(inherited[kind] for kind in ("agent_guidance", "workspace_guidance", "skills") if kind in inherited),
        Block("tools", prompt_words.tools(belt) if "tools" in inherited else ""),
    ]
    return assembled(blocks)


def changes(before: Sequence[PromptBlock], now: Sequence[PromptBlock]) -> list[str]:
    """What differs between two prompts, in words: what was added, taken out, changed."""
    was, is_now = ({(block.kind, block.source): block.digest for block in blocks} for blocks in (before, now))
    told = []
    for key in dict.fromkeys((*was, *is_now)):
        name = key[0].replace("_", " ") + (f" ({key[1]})" if key[1] else "")
        if key not in was:
            told.append(f"{name} added")
        elif key not in is_now:
            told.append(f"{name} removed")
        elif was[key] != is_now[key]:
            told.append(f"{name} changed")
    return told
