"""When a skill is used, and what it is to its thread then.

A skill is active when it was opened or run: a read of its `SKILL.md`, or a command that succeeded and names its
`SKILL.md` or one of its scripts. That it stands in a catalogue makes nothing active. The states are a view of the
recorded facts; there is no tool and no route that sets them.
"""

import posixpath
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import SkillActivated, ToolResult, TurnCompleted
from wakeful.contracts.skills import ActiveSkill, LoadReason, SkillEntry

SCRIPTS = "scripts"
MAX_COMMAND = 100_000
"""A longer command is not looked into."""
_NESTED = 2
"""How deep commands within commands (`sh -c "..."`) are looked into."""


class Use(NamedTuple):
    """What a call did with a skill."""

    skill: SkillEntry
    load_reason: LoadReason
    path: str


def activated(
    skills: Sequence[SkillEntry],
    tool_name: str,
    arguments: Mapping[str, Any],
    result: ToolResult,
    *,
    cwd: str | None,
    already: Collection[tuple[str, str]] = (),
) -> list[SkillActivated]:
    """The skills that a call which succeeded has activated. Paths are relative to `cwd`, the execution root.

    `already` holds (load_reason, path) of what this turn has activated before; the same is not said twice.
    """
    if not skills:
        return []
    seen = set(already)
    events = []
    for use in _uses(skills, tool_name, arguments, result, cwd):
        if (use.load_reason, use.path) not in seen:
            seen.add((use.load_reason, use.path))
            events.append(
                SkillActivated(
                    skill=use.skill.name,
                    scope=use.skill.scope,
                    load_reason=use.load_reason,
                    path=use.path,
                    entrypoint_path=use.skill.entrypoint_path,
                )
            )
    return events


def _uses(
    skills: Sequence[SkillEntry], tool_name: str, arguments: Mapping[str, Any], result: ToolResult, cwd: str | None
) -> Iterator[Use]:
    match tool_name.rpartition("/")[2]:
        case "read_file":
            if isinstance(path := arguments.get("path"), str):
                full = _full(path, cwd)
                yield from (Use(skill, "read_skill_md", full) for skill in skills if skill.entrypoint_path == full)
        case "exec_command":
            if not result.details.get("exit_status"):
                yield from _of_command(skills, arguments, cwd)
        case "exec_command_batch":
            for place, item in enumerate(arguments.get("items") or ()):
                if isinstance(item, Mapping) and _succeeded(place, result):
                    yield from _of_command(skills, item, cwd)


def _succeeded(place: int, result: ToolResult) -> bool:
    """Did this item of a batch succeed? Where that is not known item by item, the whole batch has to have."""
    ended: Any = result.details.get("items")
    if isinstance(ended, Sequence) and place < len(ended) and isinstance(ended[place], Mapping):
        return ended[place].get("status") == "completed" and not ended[place].get("exit_status")
    return result.status == "succeeded"


def _of_command(skills: Sequence[SkillEntry], command: Mapping[str, Any], cwd: str | None) -> Iterator[Use]:
    words, workdir = command.get("cmd"), command.get("workdir")
    if not isinstance(words, str) or len(words) > MAX_COMMAND:
        return
    folder = _full(workdir, cwd) if isinstance(workdir, str) else cwd
    for named in _paths(words, folder):
        for skill in skills:
            if named == skill.entrypoint_path:
                yield Use(skill, "read_skill_md", named)
            elif named.startswith(f"{skill.root}/{SCRIPTS}/"):
                yield Use(skill, "run_skill_script", named)


def _paths(command: str, cwd: str | None, nested: int = _NESTED) -> Iterator[str]:
    """Every word of a command as the path it would be, with `cd` followed as far as it can be read."""
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = ""
        words = list(lexer)
    except ValueError:  # a quote that is not closed: here-documents and the like
        words = command.split()
    for before, word in zip(["", *words], words, strict=False):
        if before == "cd" and not word.startswith("-"):
            cwd = _full(word, cwd)
        elif nested and any(space in word for space in " \n\t"):
            yield from _paths(word, cwd, nested - 1)
        else:
            yield _full(word.rpartition("=")[2], cwd)


def _full(path: str, cwd: str | None) -> str:
    """Absolute, without `.` and `..`."""
    return posixpath.normpath(posixpath.join(cwd or "/", path))


def active_skills(facts: Iterable[StoredFact], turn_id: str | None = None) -> list[ActiveSkill]:
    """The skills of a thread that are active, from its facts.

    As of a turn: what it activated itself is `turn_active`, and what completed turns before it used was brought back
    with the conversation and is `restored`. Without one, at rest: `session_active`. What a turn activated that did not
    complete is active no more.
    """
    of_turn: dict[str, dict[str, SkillActivated]] = {}
    kept: dict[str, SkillActivated] = {}
    for recorded in facts:
        fact = recorded.fact
        event, turn = fact.event, fact.turn_id or ""
        if isinstance(event, SkillActivated):
            of_turn.setdefault(turn, {}).setdefault(event.entrypoint_path, event)
        elif isinstance(event, TurnCompleted) and turn != turn_id:
            kept.update(of_turn.pop(turn, {}))
    own = of_turn.get(turn_id or "", {}) if turn_id is not None else {}
    resting = "session_active" if turn_id is None else "restored"
    states = {path: (event, resting) for path, event in kept.items()}
    states.update({path: (event, "turn_active") for path, event in own.items()})
    return [
        ActiveSkill.model_validate(
            {
                "name": event.skill,
                "entrypoint_path": event.entrypoint_path,
                "state": state,
                "load_reason": event.load_reason,
            }
        )
        for event, state in states.values()
    ]
