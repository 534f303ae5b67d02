"""The catalogue of an agent's skills: what was found, what stands behind another of the same name, what cannot be used.

Finding a skill does nothing: no code runs, and nothing is marked as used. A skill of a workspace is read from beneath
the workspace, one of an agent from beneath its home, where the agent may write; a link that leads out is left out.
Users may link to skills they keep elsewhere.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from wakeful.contracts.events import ContextOmission
from wakeful.contracts.prompts import ExecutionRoots
from wakeful.contracts.skills import AgentKind, SkillEntry, SkillScope
from wakeful.skills.front_matter import front_matter
from wakeful.skills.roots import roots
from wakeful.workspaces.found_files import FoundFile, as_text, omission, read_found

T = TypeVar("T")
SKILL_MD = "SKILL.md"
MAX_SKILLS = 200
"""More of a root are not listed."""
MAX_CHARACTERS = 60_000
"""Of names, descriptions and paths of one root: they stand in every prompt."""
MAX_NAME, MAX_DESCRIPTION = 200, 2_000
MAX_FILE = 1_000_000
"""Bytes. A larger file is no skill."""
MAX_FRONT_MATTER = 64_000


@dataclass(frozen=True, slots=True)
class SkillCatalogue:
    """A catalogue, in the order in which it is shown."""

    skills: tuple[SkillEntry, ...] = ()
    shadowed: tuple[SkillEntry, ...] = ()
    """Of the same name as one of a scope that wins."""
    omissions: tuple[ContextOmission, ...] = ()


def discover(of: ExecutionRoots, kind: AgentKind = "named", given: Sequence[Path] = ()) -> SkillCatalogue:
    """The skills of an agent. `given` are further roots or skills that its program named; they win over all others.

    Does not raise: what cannot be read is an omission.
    """
    skills: dict[str, SkillEntry] = {}
    shadowed: list[SkillEntry] = []
    omissions: list[ContextOmission] = []
    places: list[tuple[SkillScope, Path]] = [("given", path) for path in given]
    for scope, root in [*places, *roots(of, kind)]:
        within = {"workspace": of.workspace_anchor, "agent": of.agent_home}.get(scope)
        for entry in _in_root(scope, root, Path(within) if within is not None else None, omissions):
            if entry.name in skills:
                shadowed.append(entry)
                omissions.append(omission(entry.entrypoint_path, "duplicate"))
            else:
                skills[entry.name] = entry
    return SkillCatalogue(tuple(skills.values()), tuple(shadowed), tuple(omissions))


def _in_root(
    scope: SkillScope, root: Path, beneath: Path | None, omissions: list[ContextOmission]
) -> Iterator[SkillEntry]:
    folders = [root] if os.path.isfile(root / SKILL_MD) else _folders(root)  # noqa: PTH113  (it never raises)
    characters, listed = 0, 0
    for folder in folders[:MAX_SKILLS]:
        entry = read_skill(folder / SKILL_MD, beneath if beneath is not None else folder, partial(_entry, scope))
        if isinstance(entry, ContextOmission):
            omissions.append(entry)
        elif entry is not None:
            characters += len(entry.name) + len(entry.description) + len(entry.entrypoint_path)
            if characters > MAX_CHARACTERS:
                break
            yield entry
        listed += 1
    if left := len(folders) - listed:
        few = f"{left:,} more folders: at most {MAX_SKILLS} skills and {MAX_CHARACTERS:,} characters of one are listed"
        omissions.append(omission(str(root), "budget_limit", few))


def _entry(scope: SkillScope, file: FoundFile) -> SkillEntry:
    says = front_matter(file.data[:MAX_FRONT_MATTER].decode("utf-8", "replace"))
    folder, _, _ = file.path.rpartition("/")
    return SkillEntry(
        name=as_text(says.get("name") or folder.rpartition("/")[2])[:MAX_NAME],
        description=as_text(says.get("description", ""))[:MAX_DESCRIPTION],
        scope=scope,
        root=folder,
        entrypoint_path=file.path,
        digest=file.digest,
    )


def _folders(root: Path) -> list[Path]:
    try:
        return sorted(root / each.name for each in os.scandir(root) if os.path.isdir(each.path))  # noqa: PTH112
    except OSError:
        return []


def read_skill(path: Path, beneath: Path, parse: Callable[[FoundFile], T]) -> T | ContextOmission | None:
    """What `parse` makes of a `SKILL.md`; None where there is none. Does not raise."""
    return read_found(beneath, str(path.relative_to(beneath)), MAX_FILE, parse)
