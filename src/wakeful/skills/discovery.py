"""The catalogue of an agent's skills: what was found, what stands behind another of the same name, what cannot be used.

Finding a skill does nothing: no code runs, and nothing is marked as used. A skill of a workspace is read from beneath
the workspace, one of an agent from beneath its home, where the agent may write; a link that leads out is left out.
Users may link to skills they keep elsewhere.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wakeful.contracts.errors import InvalidConfig, ToolReported
from wakeful.contracts.events import ContextOmission
from wakeful.contracts.prompts import ExecutionRoots
from wakeful.contracts.skills import AgentKind, SkillEntry, SkillScope
from wakeful.skills.roots import roots
from wakeful.workspaces import Workspace

MAX_VALUE = 2_000


def read_front_matter(text: str) -> dict[str, str]:
    """`name` and `description`, as far as they are plain values."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return {}
    end = next((place for place, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return {}
    import yaml  # an agent without skills must not pay for it

    try:
        said = yaml.safe_load("\n".join(lines[1:end]))
    except yaml.YAMLError:
        return {}
    if not isinstance(said, dict):
        return {}
    found = {}
    for field in ("name", "description"):
        value = said.get(field)
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            words = " ".join(str(value).split())[:MAX_VALUE]
            if words:
                found[field] = words
    return found


SKILL_MD = "SKILL.md"
MAX_SKILLS = 200
"""More of a root are not listed."""
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
                omissions.append(ContextOmission(ref=entry.entrypoint_path, reason="duplicate"))
            else:
                skills[entry.name] = entry
    return SkillCatalogue(tuple(skills.values()), tuple(shadowed), tuple(omissions))


def _in_root(
    scope: SkillScope, root: Path, beneath: Path | None, omissions: list[ContextOmission]
) -> Iterator[SkillEntry]:
    folders = [root] if (root / SKILL_MD).is_file() else _folders(root)
    for folder in folders[:MAX_SKILLS]:
        path = folder / SKILL_MD
        try:
            data = read_skill(path, beneath if beneath is not None else folder)
        except FileNotFoundError:
            continue
        except (OSError, ToolReported, InvalidConfig) as problem:
            blocked = isinstance(problem, ToolReported) and problem.error.kind == "outside_workspace"
            omissions.append(ContextOmission(ref=str(path), reason="policy_blocked" if blocked else "custom"))
            continue
        says = read_front_matter(data[:MAX_FRONT_MATTER].decode("utf-8", "replace"))
        yield SkillEntry(
            name=says.get("name") or folder.name,
            description=says.get("description", ""),
            scope=scope,
            root=str(folder),
            entrypoint_path=str(path),
            digest="sha256:" + hashlib.sha256(data).hexdigest(),
        )
    omissions += [ContextOmission(ref=str(folder / SKILL_MD), reason="budget_limit") for folder in folders[MAX_SKILLS:]]


def _folders(root: Path) -> list[Path]:
    try:
        return sorted(path for path in root.iterdir() if path.is_dir())
    except OSError:
        return []


def read_skill(path: Path, beneath: Path) -> bytes:
    """A `SKILL.md`. Raises FileNotFoundError; ToolReported or InvalidConfig where no plain file beneath is read."""
    folder = Workspace.at(beneath)
    name = str(path.relative_to(beneath))
    if folder.stat(name) is None:
        raise FileNotFoundError(path)
    return folder.read(name).data
