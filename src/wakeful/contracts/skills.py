"""Skills as values: what a model is told about them, and what becomes of one that is used."""

from typing import Literal, TypeAlias

from wakeful.contracts.values import Value

SkillScope: TypeAlias = Literal["user", "agent", "workspace", "given"]
"""Where it was found. `given`: the program that made the agent named it."""
LoadReason: TypeAlias = Literal["read_skill_md", "run_skill_script", "prompt_injection"]
"""`prompt_injection` is kept for a runtime that puts a skill into the prompt by itself; nothing says it yet."""
SkillState: TypeAlias = Literal["turn_active", "session_active", "restored"]
AgentKind: TypeAlias = Literal["default", "named", "child"]


class SkillEntry(Value):
    """A skill as the catalogue has it: a folder with a `SKILL.md`. Its body is never here."""

    name: str
    description: str = ""
    scope: SkillScope
    root: str
    """Its folder, by absolute path."""
    entrypoint_path: str
    """Its `SKILL.md`, by absolute path."""
    digest: str = ""
    """Of its `SKILL.md`, as it was found."""


class ActiveSkill(Value):
    """A skill that was opened or run in a thread."""

    name: str
    entrypoint_path: str
    state: SkillState
    load_reason: LoadReason
