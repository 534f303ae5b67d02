"""The system prompt as a value: which blocks it is made of, where each is from, and what holds around it.

The words stand once, in `TurnConfig.instructions`; a block says how long it is, so that the whole can be cut again.
"""

from typing import Literal, TypeAlias

from wakeful.contracts.values import Value

BLOCK_SEPARATOR = "\n\n"
BlockKind: TypeAlias = Literal[
    "runtime_policy",
    "mode",
    "agent_instructions",
    "agent_guidance",
    "workspace_guidance",
    "skills",
    "tools",
    "working_memory",
    "active_skills",
    "work_items",
    "memories",
]
Stability: TypeAlias = Literal["stable", "agent_scoped", "turn_scoped"]
SourceScope: TypeAlias = Literal["agent", "workspace"]
SourceKind: TypeAlias = Literal["agents_md", "claude_md"]


class PromptBlock(Value):
    """A stretch of the system prompt."""

    kind: BlockKind
    stability: Stability
    length: int
    """In characters. Blocks follow one another with `BLOCK_SEPARATOR` between them."""
    source: str | None = None
    """The file it is from, where it is from one."""
    digest: str = ""
    """Of its words: what two turns compare."""


class InstructionSource(Value):
    """A file whose words are in the prompt. Says all about it but the words."""

    scope: SourceScope
    kind: SourceKind
    path: str
    digest: str
    size_bytes: int
    truncated: bool = False
    """It was too large, and only its beginning is in the prompt."""


class LoadedAgentsMd(Value):
    """What an agent's summary says about its guidance: sources, never their content."""

    agent_source: InstructionSource | None = None
    workspace_source: InstructionSource | None = None


class ExecutionRoots(Value):
    """Which folder is which, for one agent at one time.

    Guidance and skills of the project follow the anchor, those of the agent its home. Files and commands follow the
    execution root and the working directory, which a worktree changes and the anchor does not.
    """

    agent_home: str | None = None
    """None: there is no folder for this agent."""
    workspace_id: str | None = None
    workspace_anchor: str | None = None
    execution_root: str | None = None
    cwd: str | None = None
    user_home: str | None = None
