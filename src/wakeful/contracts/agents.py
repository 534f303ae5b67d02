"""What holds for a whole turn: the agent's configuration as a value, stored once under its own hash."""

from collections.abc import Collection
from functools import cached_property
from typing import Any, Self

from wakeful.contracts.budgets import SpendWindow
from wakeful.contracts.controls import CompactionPolicy
from wakeful.contracts.model_settings import ModelSettings, provider_of, stored_settings
from wakeful.contracts.policies import GatePolicy
from wakeful.contracts.prompts import PromptBlock
from wakeful.contracts.setting_names import EXTRAS
from wakeful.contracts.skills import SkillEntry
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.values import Value
from wakeful.contracts.workflows import WorkflowRun

_SAID_OTHERWISE = frozenset({"model_owner", "prompt_blocks", "skills", "tools", "workflow", "context_window"})
"""Fields that follow from others, that a turn cannot go on with another of, or that are told of one by one."""


class TurnConfig(Value):
    """What a turn was begun with. Names things; holds no code, no key and no live object."""

    agent_name: str
    model_ref: str
    model_owner: str | None = None
    """The server of the model, where an address in code says more than its name; see `owner`."""
    fallbacks: tuple[str, ...] = ()
    instructions: str = ""
    """The whole system prompt, as it was worked out when the turn began."""
    prompt_blocks: tuple[PromptBlock, ...] = ()
    """What it is made of; none: it is the agent's own instructions and nothing else."""
    skills: tuple[SkillEntry, ...] = ()
    """What the model may open: the catalogue of the turn."""
    tools: tuple[ToolDeclaration, ...] = ()
    settings: dict[str, Any] = {}
    """As they were written down; `model_settings` is what they mean."""
    output_schema: dict[str, Any] | None = None
    policy: GatePolicy = GatePolicy()
    """What the owner says about calls, and the standing answers there were when the turn was taken up."""
    profile: str = "chat"
    """Which built-in tools it has."""
    workspace: str | None = None
    """The folder they work in, by absolute path."""
    sandbox: dict[str, Any] = {}
    """What commands are held to, as far as it is not the default."""
    injected_tool_args: dict[str, str] = {}
    """Fields that every tool shows the model and no tool ever gets."""
    require: tuple[str, ...] = ()
    """Capabilities that the caller wants of whatever model is asked."""
    accept_gap: tuple[str, ...] = ()
    """Capabilities that may be missing, although the turn needs them: the caller's word."""
    workflow: WorkflowRun | None = None
    """What the turn runs, when it runs a workflow and asks no model by itself."""
    output_retries: int = 2
    """How often an answer that does not fit may be given again."""
    emit_mcp_progress: bool = True
    planning_enabled: bool = False
    planning_model: str | None = None
    planning_instructions: str = ""
    budget_awareness: str | None = None
    allow_parallel_subagents: bool = False
    max_parallel_subagents: int = 3
    subtasks: bool = False
    """It may split its work into children."""
    collections: tuple[str, ...] = ()
    """Sets of texts that it may search, by name."""
    compaction: CompactionPolicy = CompactionPolicy()
    spend_windows: tuple[SpendWindow, ...] = ()
    """What all runs of the agent may spend, by period."""
    options: dict[str, Any] = {}
    """What else the agent says of itself, as its file would have it: for whoever has to make it again."""

    context_window: int | None = None
    """How many tokens the model can be shown; None where nobody knows."""

    @property
    def owner(self) -> str:
        """Whose the model is: what was written for one server is not sent to another that goes by the same name."""
        return self.model_owner or provider_of(self.model_ref)

    @cached_property
    def model_settings(self) -> ModelSettings:
        return stored_settings(self.settings)

    @cached_property
    def prompt_tokens(self) -> int:
        """About how long everything before the conversation is."""
        told = sum(len(tool.name) + len(tool.description) + len(str(tool.input_schema)) for tool in self.tools)
        return -(-(len(self.instructions) + told) // 3)

    @cached_property
    def kept(self) -> dict[str, Any]:
        """What others have worked out of it alone, by a name of their own: it is gone with the configuration."""
        return {}

    @cached_property
    def _by_name(self) -> dict[str, ToolDeclaration]:
        return {tool.name: tool for tool in self.tools}

    @property
    def tool_names(self) -> Collection[str]:
        return self._by_name.keys()

    def tool(self, name: str) -> ToolDeclaration | None:
        return self._by_name.get(name)

    def __copy__(self) -> Self:
        """What was kept with this one is not of the copy, which may be about to be changed."""
        copy = super().__copy__()
        copy.__dict__.pop("kept", None)
        return copy

    def changed(self, **changes: Any) -> "TurnConfig":
        """The same with some fields given anew. Blocks go with the prompt they are of."""
        if "instructions" in changes:
            changes.setdefault("prompt_blocks", ())
        if changes.get("model_ref", self.model_ref) != self.model_ref:
            changes.setdefault("model_owner", None)
        copy = self.model_copy(update=changes)
        for worked_out in ("_by_name", "prompt_tokens"):
            copy.__dict__.pop(worked_out, None)
        if "settings" in changes:
            copy.__dict__.pop("model_settings", None)
        return copy

    def settings_below(self, model_ref: str | None = None) -> dict[str, Any]:
        """Settings for levels below this one, asked of its own model or of another.

        Which tools have to be called is said of its own conversation. What was written for one provider stays there.
        """
        elsewhere = model_ref is not None and provider_of(model_ref) != self.owner
        kept_here = ("tool_choice", *EXTRAS) if elsewhere else ("tool_choice",)
        return {name: value for name, value in self.settings.items() if name not in kept_here}

    def changes_from(self, before: "TurnConfig") -> tuple[str, ...]:
        """What differs, in words a person reads."""
        changed = [
            name
            for name in type(self).model_fields
            if name not in _SAID_OTHERWISE and getattr(self, name) != getattr(before, name)
        ]
        now, then = ({tool.name: tool for tool in config.tools} for config in (self, before))
        for name in sorted(now.keys() | then.keys()):
            if name not in then:
                changed.append(f"tool:{name} added")
            elif name not in now:
                changed.append(f"tool:{name} removed")
            elif now[name].input_schema != then[name].input_schema:
                changed.append(f"tool:{name} schema")
            elif now[name].effect != then[name].effect:
                changed.append(f"tool:{name} effect")
            elif now[name] != then[name]:
                changed.append(f"tool:{name} declaration")
        return tuple(changed)
