"""Reading guidance from its two roots: the agent's home, and the anchor of the workspace.

Never from the current folder, and never from a worktree or whatever else the anchor's project is worked on in. A file
is read from beneath its root: a link that leads out of the workspace is not followed, so that no repository can put a
private file of this machine into a prompt. What is too large is cut at a line, and says so.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from wakeful.contracts.events import ContextOmission
from wakeful.contracts.prompts import ExecutionRoots, InstructionSource, LoadedAgentsMd, SourceKind, SourceScope
from wakeful.workspaces.found_files import FoundFile, read_found

AGENTS_MD, CLAUDE_MD = "AGENTS.md", "CLAUDE.md"
MAX_BYTES = 32_000
"""How much of a file goes into a prompt."""
MAX_FILE_BYTES = 4_000_000
"""A larger file is not guidance for anybody."""


@dataclass(frozen=True, slots=True)
class GuidanceFile:
    """A file of guidance: where it is from, and what of it is shown."""

    source: InstructionSource
    text: str


@dataclass(frozen=True, slots=True)
class LoadedGuidance:
    """What there is for one agent in one workspace."""

    agent: GuidanceFile | None = None
    workspace: GuidanceFile | None = None
    omissions: tuple[ContextOmission, ...] = ()

    @property
    def sources(self) -> LoadedAgentsMd:
        """The same without any content."""
        return LoadedAgentsMd(
            agent_source=self.agent.source if self.agent is not None else None,
            workspace_source=self.workspace.source if self.workspace is not None else None,
        )


def load_guidance(roots: ExecutionRoots, hide: Callable[[str], str] = str) -> LoadedGuidance:
    """The guidance that holds for these roots. Does not raise: what cannot be read is an omission.

    `hide` takes out of a text what no model may be told.
    """
    omissions: list[ContextOmission] = []
    home, anchor = roots.agent_home, roots.workspace_anchor
    agent = _first(home, "agent", (AGENTS_MD,), omissions) if home is not None else None
    # An agent whose workspace is its home has one file, and it is the agent's.
    is_home = home is not None and anchor is not None and os.path.realpath(home) == os.path.realpath(anchor)
    workspace = None
    if anchor is not None and not is_home:
        workspace = _first(anchor, "workspace", (AGENTS_MD, CLAUDE_MD), omissions)
    agent, workspace = (
        replace(file, text=hide(file.text)) if file is not None else None for file in (agent, workspace)
    )
    return LoadedGuidance(agent, workspace, tuple(omissions))


def _first(
    root: str, scope: SourceScope, names: tuple[str, ...], omissions: list[ContextOmission]
) -> GuidanceFile | None:
    """The first of these that is there. One that is there and cannot be read keeps the others out all the same."""
    for name in names:
        found = read_found(Path(root), name, MAX_FILE_BYTES, partial(_shown, scope, name, omissions))
        if isinstance(found, ContextOmission):
            omissions.append(found.model_copy(update={"high_impact": True}))
            return None
        if found is not None:
            return found if found.text else None
    return None


def _shown(scope: SourceScope, name: str, omissions: list[ContextOmission], file: FoundFile) -> GuidanceFile:
    data = file.data
    kind: SourceKind = "agents_md" if name == AGENTS_MD else "claude_md"
    text = data[:MAX_BYTES].decode("utf-8", "ignore" if len(data) > MAX_BYTES else "replace")
    truncated = len(data) > MAX_BYTES
    if truncated:
        kept = text.rpartition("\n")[0] or text
        text = f"{kept}\n[cut here: {name} has {len(data):,} bytes, and the first {len(kept.encode()):,} are shown]"
        omissions.append(ContextOmission(ref=file.path, reason="too_large", high_impact=True))
    source = InstructionSource(
        scope=scope,
        kind=kind,
        path=file.path,
        digest=file.digest,
        size_bytes=len(data),
        truncated=truncated,
    )
    return GuidanceFile(source, text.replace("\x00", "").strip())
