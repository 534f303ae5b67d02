"""A report about an agent's prompt: its parts, and where each is from."""

from typing import Any

from wakeful.contracts.prompts import BlockKind, LoadedAgentsMd, Stability
from wakeful.contracts.skills import SkillEntry
from wakeful.contracts.values import Value


class ShownBlock(Value):
    """A block of a prompt with its words."""

    kind: BlockKind
    stability: Stability
    source: str | None = None
    tokens: int
    """Estimated."""
    text: str


class PromptReport(Value):
    """A system prompt, its parts, and the folders it rests on."""

    agent: str
    turn_id: str | None = None
    """The turn that had it; None: it was worked out for this question."""
    agent_home: str | None = None
    workspace_id: str | None = None
    workspace_anchor: str | None = None
    execution_root: str | None = None
    cwd: str | None = None
    execution_policy: dict[str, Any] = {}
    """How commands are confined."""
    loaded_agents_md: LoadedAgentsMd = LoadedAgentsMd()
    skills: tuple[SkillEntry, ...] = ()
    left_out: tuple[str, ...] = ()
    """Parts that were left out, and why."""
    blocks: tuple[ShownBlock, ...] = ()
    system_prompt: str = ""
