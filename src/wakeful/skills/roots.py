"""Where skills are looked for: one list of places a scope, and the first place that exists is the scope's root."""

import os
from collections.abc import Sequence
from pathlib import Path

from wakeful.contracts.prompts import ExecutionRoots
from wakeful.contracts.skills import AgentKind, SkillScope

_PLACES = (".agents/skills", ".codex/skills", ".claude/skills")
PLACES: dict[SkillScope, Sequence[str]] = {
    "workspace": _PLACES,
    "agent": ("skills", *_PLACES),
    "user": _PLACES,
}
"""Below the scope's folder, in order. The scopes are in the order in which they win."""
SCOPES: dict[AgentKind, Sequence[SkillScope]] = {
    "default": ("workspace", "agent", "user"),
    "named": ("workspace", "agent"),
    "child": ("workspace", "agent"),
}
"""Which scopes an agent sees: what the user keeps for everything is the default agent's."""


def roots(of: ExecutionRoots, kind: AgentKind) -> list[tuple[SkillScope, Path]]:
    """The roots that exist, at most one a scope, the scope that wins first."""
    # An agent that works in its own home has one set of skills there, and it is the agent's.
    anchor = of.workspace_anchor if of.workspace_anchor != of.agent_home else None
    folders = {"workspace": anchor, "agent": of.agent_home, "user": of.user_home}
    found: list[tuple[SkillScope, Path]] = []
    for scope in SCOPES[kind]:
        folder = folders[scope]
        if folder is None:
            continue
        places = (Path(folder) / place for place in PLACES[scope])
        there = next((path for path in places if os.path.isdir(path)), None)  # noqa: PTH112  (it never raises)
        if there is not None:
            found.append((scope, there))
    return found
