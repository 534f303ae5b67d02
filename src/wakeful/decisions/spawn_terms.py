"""`spawn_agent`: what a call of it asks for, what is refused, and the messages between a parent and its child.

A private child and the task that supervises it follow from the call that makes them: their names are the same however
often the call is carried out. The rule: a child is never given what its parent does not have.
"""

import hashlib
from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from wakeful.contracts.authority import Authority, known_authority, lowest
from wakeful.contracts.children import (
    LABEL_CHARS,
    MOST_GENERATIONS,
    MOST_NAMED_AGENTS,
    MOST_OPEN_CHILDREN,
    MOST_SPAWN_CHARS,
    PARENT,
    ChildSpec,
    SpawnPreset,
    WorkspaceMode,
)
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.events import MessageAdmitted
from wakeful.contracts.messages import SystemOrigin, TaskOrigin
from wakeful.contracts.tools import PREVIEW_CHARS, ToolDeclaration
from wakeful.contracts.workspaces import AGENT_HOME, WorkspacePlace
from wakeful.decisions.delegation import Refusal
from wakeful.decisions.runtime_answers import SPAWN_AGENT

MOST_NAME_CHARS: Final = 128
_AMOUNT = {"type": "integer", "minimum": 1}


def spawn_declaration(preset: SpawnPreset) -> ToolDeclaration:
    """The tool, for an agent that may make agents up to this preset."""
    presets = ["private_child", "public_named"] if preset == "public_named" else ["private_child"]
    named = {
        "agent_id": {
            "type": "string",
            "minLength": 1,
            "maxLength": MOST_NAME_CHARS,
            "description": "The name of a public agent. An agent that exists is not spawned: send it nothing.",
        }
    }
    properties: dict[str, Any] = {
        "preset": {
            "enum": presets,
            "description": "private_child (without it): yours alone, until its work is done.",
        },
        "initial_message": {
            "type": "string",
            "minLength": 1,
            "maxLength": MOST_SPAWN_CHARS,
            "description": "What it is to do. It sees this, and nothing of your conversation.",
        },
        "workspace_mode": {
            "enum": ["inherit", "worktree"],
            "description": (
                "inherit (without it): it works where you work. worktree: it works on a copy of your repository, on a "
                "branch of its own, which is kept if it holds work."
            ),
        },
        "budget": {
            "type": "object",
            "properties": {
                "usd": {"type": "number", "exclusiveMinimum": 0},
                "tokens": _AMOUNT,
                "model_calls": _AMOUNT,
                "tool_calls": _AMOUNT,
            },
            "additionalProperties": False,
            "description": "What it may use of your budget. Without it: half of what you have left.",
        },
        **(named if preset == "public_named" else {}),
    }
    return ToolDeclaration(
        name=SPAWN_AGENT,
        description=(
            "Have an agent of your own work on something in the background. It has your tools, a conversation of its "
            "own and a part of your budget. Its end comes to you as a message; with the task_id you get, task_status, "
            "task_output, task_input (say something to it) and task_stop work on it. Do not wait for it in a loop."
        ),
        input_schema={
            "type": "object",
            "properties": properties,
            "required": ["initial_message"] if preset == "private_child" else [],
            "additionalProperties": False,
        },
        effect="pure",
        parallel_safe=False,
        child_safe=False,
        permission_class="subagent",
        runtime_owner="subagent",
        interrupt_behavior="cancel",
        content=("initial_message",),
    )


class Family(NamedTuple):
    """Where an agent that spawns stands."""

    agent_id: str
    preset: SpawnPreset
    generation: int = 0
    """0: nobody spawned it."""
    open_children: int = 0
    named: int = 0
    """Public agents that it has made."""
    taken: Collection[str] = ()
    """Names of agents that are known here."""
    place: WorkspacePlace | None = None
    """Where the turn works; None: on no files."""
    untrusted: str = ""
    """Why what the turn was told, or has read, is no instruction; blank: it is one."""


def spawn_of(arguments: Mapping[str, Any], family: Family, turn_id: str, call_id: str) -> ChildSpec | Refusal:
    """What the call asks for, without its grant. Its arguments fit the schema; the rest is looked at here."""
    preset: SpawnPreset = arguments.get("preset", "private_child")
    words = arguments.get("initial_message", "").strip()
    named = arguments.get("agent_id")
    mode: WorkspaceMode = arguments.get("workspace_mode", "inherit")
    if mode == "worktree" and preset == "public_named":
        return _wrong(
            "workspace_mode", "a public agent cannot work in a worktree of yours: leave it out, or give inherit"
        )
    if mode == "worktree" and (family.place is None or family.place.workspace_id == AGENT_HOME):
        return _wrong(
            "workspace_mode",
            "you do not work in a repository: leave it out, or call use_workspace with a repository first",
        )
    if family.generation >= MOST_GENERATIONS:
        words = (
            f"this agent is of generation {family.generation}, and agents of generation {MOST_GENERATIONS} cannot spawn"
        )
        return Refusal("max_depth_reached", words, {"generation": family.generation, "most": MOST_GENERATIONS})
    if preset == "private_child":
        if named is not None:
            return _wrong("agent_id", "a private child has no name of its own: leave it out, or spawn a public_named")
        if not words:
            return _wrong("initial_message", "a private child needs a message that says what it is to do")
        if family.open_children >= MOST_OPEN_CHILDREN:
            told = (
                f"{family.open_children} children are open, and {MOST_OPEN_CHILDREN} is the limit: wait until one ends"
            )
            return Refusal("too_many_children", told, {"open": family.open_children, "most": MOST_OPEN_CHILDREN})
        name = child_name(family.agent_id, turn_id, call_id)
        return ChildSpec(agent_id=name, initial_message=words, workspace_mode=mode, place=family.place)
    if named is None:
        return _wrong("agent_id", "a public agent needs a name")
    if arguments.get("budget") is not None:
        return _wrong("budget", "a public agent gets no part of your budget: what it spends counts in your windows")
    if family.untrusted:
        told = f"the turn has untrusted input ({family.untrusted}): nothing that stays is made because of it"
        return Refusal("untrusted_input", told, {"cause": family.untrusted})
    if named in family.taken:
        return taken(named)
    if family.named >= MOST_NAMED_AGENTS:
        told = f"this agent has made {family.named} public agents, and {MOST_NAMED_AGENTS} is the limit"
        return Refusal("too_many_agents", told, {"made": family.named, "most": MOST_NAMED_AGENTS})
    return ChildSpec(agent_id=named, preset="public_named", initial_message=words)


def taken(name: str) -> Refusal:
    """An agent that exists has its own owner: nobody is handed it, and nobody speaks to it as its maker."""
    told = f"an agent called {name!r} exists already; spawn_agent only makes new agents"
    return Refusal("agent_exists", told, {"field": "agent_id", "agent_id": name})


def _wrong(field: str, words: str) -> Refusal:
    return Refusal("invalid_input", words, {"field": field})


# --- names ---------------------------------------------------------------------------------------------------------


def child_name(parent: str, turn_id: str, call_id: str) -> str:
    """The name of the child that a call makes: its parent's, and what follows from the call."""
    return f"{parent[: MOST_NAME_CHARS - 18]}.c{_hash(parent, turn_id, call_id)}"


def task_of(agent_id: str, *call: str) -> str:
    """The task that makes an agent: of a private child, which has a name of its own, that follows from the name."""
    return f"task_c{_hash(agent_id, *call)}"


def label_of(initial_message: str, agent_id: str) -> str:
    """What the parent's lists call the task."""
    first = initial_message.partition("\n")[0].strip()
    return first[:LABEL_CHARS] or f"make the agent {agent_id}"


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


# --- messages ------------------------------------------------------------------------------------------------------


def delegation_id(task_id: str, number: str = "first") -> str:
    return "msg_" + hashlib.sha256(f"child\0{task_id}\0{number}".encode()).hexdigest()[:32]


def delegation(task_id: str, words: str, behind: Authority, *, number: str = "first") -> MessageAdmitted:
    """What a parent says to its child. The runtime says it: it is nobody's operator, and derives from what the parent's
    turn derives from."""
    return MessageAdmitted(
        message_id=delegation_id(task_id, number),
        item=UserItem(parts=(Text(words),)),
        message_kind="internal_followup",
        origin=SystemOrigin(subsystem=PARENT),
        authority_class="runtime_instruction",
        derived_from=known_authority(lowest((behind, "runtime_instruction"))),
        delivery_surface="runtime_system",
        admission_context="runtime_owned",
        source_refs={"task_id": task_id},
        causation_id=task_id,
        task_id=task_id,
        prompt_preview=words[:PREVIEW_CHARS],
    )


def bootstrap(maker: str, task_id: str, words: str, behind: Authority) -> MessageAdmitted:
    """What a new public agent begins with. Its maker said it, and no task of anybody's is behind it."""
    said = hashlib.sha256(f"bootstrap\0{task_id}".encode()).hexdigest()[:32]
    return MessageAdmitted(
        message_id=f"msg_{said}",
        item=UserItem(parts=(Text(words),)),
        message_kind="internal_followup",
        origin=SystemOrigin(subsystem="creator_bootstrap"),
        authority_class="runtime_instruction",
        derived_from=known_authority(lowest((behind, "runtime_instruction"))),
        delivery_surface="runtime_system",
        admission_context="runtime_owned",
        source_refs={"created_by": maker},
        prompt_preview=words[:PREVIEW_CHARS],
    )


def notice(task_id: str, label: str, brief_id: str, behind: Authority) -> MessageAdmitted:
    """A child wanted its operator to know something: its parent is told that, and reads it with `task_status`."""
    words = f"Task {task_id} reports: {label}\ntask_status shows it (last_progress_brief)."
    return _followup(task_id, words, "brief", brief_id, behind)


def question(task_id: str, label: str, wait_id: str, behind: Authority) -> MessageAdmitted:
    """A child waits for its operator's word: that is its parent's to give."""
    words = f"Task {task_id} waits for your answer: {label}\ntask_status shows what for (waits_for); answer it with "
    return _followup(task_id, f"{words}task_input, or end it with task_stop.", "wait", wait_id, behind)


def _followup(task_id: str, words: str, kind: str, name: str, behind: Authority) -> MessageAdmitted:
    """What a parent is told of its child between beginning and end. It quotes nothing that the child said."""
    said = hashlib.sha256(f"child\0{task_id}\0{kind}\0{name}".encode()).hexdigest()[:32]
    return MessageAdmitted(
        message_id=f"msg_{said}",
        item=UserItem(parts=(Text(words),)),
        message_kind="internal_followup",
        origin=TaskOrigin(task_id=task_id),
        authority_class="runtime_instruction",
        derived_from=known_authority(lowest((behind, "runtime_instruction"))),
        delivery_surface="runtime_system",
        admission_context="runtime_owned",
        source_refs={"task_id": task_id, f"{kind}_id": name},
        causation_id=task_id,
        task_id=task_id,
        prompt_preview=words[:PREVIEW_CHARS],
    )
