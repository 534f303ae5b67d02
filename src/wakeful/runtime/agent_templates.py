"""Templates of agents' homes: which there are, what is in one, and a home that is made from one.

A template is a folder with an `AGENTS.md` and, where it brings skills, a `skills.json`. It is read whole before
anything is written, and a home is made aside and then moved to its place: whatever fails, no half of a home is left.
Templates of the runtime are written to `~/.agents/templates` when it starts; a copy that was changed is left as it is.
"""

import hashlib
import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.contracts.errors import InvalidRequest, TemplateNotFound
from wakeful.guidance import AGENTS_MD
from wakeful.runtime.builtin_templates import (
    BUILTIN_SKILLS,
    BUILTIN_TEMPLATES,
    HOME_GUIDANCE,
    NEW_MEMORY,
    VERSION,
)
from wakeful.settings.agent_homes import OWN_FOLDERS, STATE_FOLDER
from wakeful.skills.discovery import SKILL_MD

LOG = logging.getLogger(__name__)
SKILLS_JSON, MANIFEST, PROVENANCE = "skills.json", ".wakeful-template.json", "template.json"
BUILTIN = "builtin:"
MAX_BYTES = 1_000_000
"""Of a file of a template."""
MAX_SKILL_BYTES, MAX_SKILL_FILES = 20_000_000, 1_000
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_GITHUB = re.compile(r"https://github\.com/[^/\s]+/[^/\s]+/tree/[^/\s]+/\S+")
FORMS = "Give the id of a template in ~/.agents/templates, or the absolute path of a folder with an AGENTS.md."


class SkillFolder(NamedTuple):
    """A skill that a template brings: its files, or the folder that it is copied from."""

    name: str
    ref: str
    files: Mapping[str, str] | None = None
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A template that was read."""

    selector: str
    """As it was named."""
    source: Path
    guidance: str
    skills: tuple[SkillFolder, ...] = field(default=())

    @property
    def digest(self) -> str:
        said = json.dumps([self.guidance, [skill.ref for skill in self.skills]])
        return "sha256:" + hashlib.sha256(said.encode()).hexdigest()


def templates_folder() -> Path:
    return Path.home() / ".agents" / "templates"


# --- reading one -------------------------------------------------------------------------------------------------


def read_template(selector: str) -> Template:
    """A template by its id or its path. Blocks on the disk. Raises InvalidRequest with what is wrong with it."""
    folder = _folder(selector)
    if not folder.is_dir():
        known = sorted(path.name for path in templates_folder().glob("*/") if (path / AGENTS_MD).is_file())
        there = f" There are: {', '.join(known)}." if known else ""
        raise TemplateNotFound(f"there is no template {selector!r}: {folder} is not a folder", FORMS + there)
    guidance = _text(folder / AGENTS_MD, selector)
    if not guidance.strip():
        raise InvalidRequest(f"template {selector!r}: {folder / AGENTS_MD} is empty", "Write what the agent is told.")
    return Template(selector, folder, guidance, _skills(folder, selector))


def unseeded(name: str) -> Template:
    """One of the runtime's, as it will be written."""
    files = BUILTIN_TEMPLATES[name]
    refs = json.loads(files.get(SKILLS_JSON, "{}")).get("skill_refs", ())
    skills = tuple(_skill(ref, f"template {name!r}: skill {ref!r}") for ref in refs)
    return Template(name, templates_folder() / name, files[AGENTS_MD], skills)


def _folder(selector: str) -> Path:
    if _GITHUB.fullmatch(selector):
        _refuse_remote(f"template {selector!r}")
    path = Path(selector)
    if path.is_absolute():
        return path
    if not ID.fullmatch(selector):
        raise InvalidRequest(f"{selector!r} is not the name of a template", FORMS)
    return templates_folder() / selector


def _refuse_remote(what: str) -> None:
    raise InvalidRequest(
        f"{what} is on GitHub, and nothing is fetched from there yet",
        "Clone the repository and give the absolute path of the folder.",
    )


def _skills(folder: Path, selector: str) -> tuple[SkillFolder, ...]:
    path = folder / SKILLS_JSON
    if not path.exists():
        return ()
    try:
        said = json.loads(_text(path, selector))
    except ValueError as error:
        raise InvalidRequest(f"template {selector!r}: {path} is not JSON: {error}", "Mend the file.") from None
    refs = said.get("skill_refs") if isinstance(said, dict) else None
    if not isinstance(refs, list) or not all(isinstance(ref, str) for ref in refs) or len(said) > 1:
        hint = 'Write {"skill_refs": ["builtin:wakeful-notes", "/absolute/path/of/a/skill"]}.'
        raise InvalidRequest(f"template {selector!r}: {path} must hold a list, skill_refs, and nothing else", hint)
    found = [_skill(ref, f"template {selector!r}: skill {ref!r}") for ref in refs]
    names = [skill.name for skill in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidRequest(f"template {selector!r}: two skills are called {twice[0]!r}", "Leave one of them out.")
    return tuple(found)


def _skill(ref: str, what: str) -> SkillFolder:
    if ref.startswith(BUILTIN):
        name = ref.removeprefix(BUILTIN)
        if name not in BUILTIN_SKILLS:
            raise InvalidRequest(f"{what} is not a builtin skill", f"There are: {', '.join(BUILTIN_SKILLS)}.")
        return SkillFolder(name, ref, BUILTIN_SKILLS[name])
    if ref.startswith("https://github.com/"):
        _refuse_remote(what)
    folder = Path(ref)
    if not folder.is_absolute():
        raise InvalidRequest(
            f"{what} is not a reference to a skill", "Give builtin:NAME, or the absolute path of its folder."
        )
    if not (folder / SKILL_MD).is_file():
        raise InvalidRequest(f"{what} has no {SKILL_MD}", "Name the folder of a skill.")
    files = [path for path in folder.rglob("*") if path.is_file()]
    if len(files) > MAX_SKILL_FILES or sum(path.stat().st_size for path in files) > MAX_SKILL_BYTES:
        raise InvalidRequest(
            f"{what} is too large", f"At most {MAX_SKILL_FILES:,} files and {MAX_SKILL_BYTES:,} bytes."
        )
    return SkillFolder(folder.name, ref, folder=folder)


def _text(path: Path, selector: str) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidRequest(f"template {selector!r}: {path} has over {MAX_BYTES:,} bytes", "Make it shorter.")
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise InvalidRequest(f"template {selector!r} has no {path.name}", f"Write {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"template {selector!r}: {path} cannot be read: {error}", "Mend the file.") from None


# --- making a home -----------------------------------------------------------------------------------------------


def make_home(home: Path, template: Template, now: int) -> bool:
    """Make a home from a template, or complete one that is there: nothing that is there is overwritten.

    True: the folder was not there before. `now` is in Unix microseconds. Blocks on the disk. Raises InvalidRequest
    where it cannot be made.
    """
    try:
        home.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=home.parent, ignore_cleanup_errors=True) as aside:
            made = Path(aside) / "home"
            _write_home(made, template, now)
            if not home.exists():
                made.rename(home)
                return True
            _complete(home, made)
            return False
    except OSError as error:
        raise InvalidRequest(
            f"the home {home} cannot be made: {error}", "Free some space, or repair the folder."
        ) from None


def _write_home(home: Path, template: Template, now: int) -> None:
    home.mkdir(mode=0o700)
    for name in OWN_FOLDERS:
        (home / name).mkdir()
    (home / STATE_FOLDER).mkdir(parents=True)
    (home / AGENTS_MD).write_text(f"{template.guidance.rstrip()}\n\n{HOME_GUIDANCE}", "utf-8")
    for name, text in NEW_MEMORY.items():
        (home / name).write_text(text, "utf-8")
    for skill in template.skills:
        place = home / "skills" / skill.name
        if skill.folder is not None:
            shutil.copytree(skill.folder, place, symlinks=True)
            continue
        place.mkdir()
        for name, text in (skill.files or {}).items():
            (place / name).write_text(text, "utf-8")
    (home / STATE_FOLDER / PROVENANCE).write_text(json.dumps(_provenance(template, now), indent=2) + "\n", "utf-8")


def _provenance(template: Template, now: int) -> dict[str, Any]:
    """Where the home came from: a record, which nothing obeys."""
    return {
        "template": template.selector,
        "source": str(template.source),
        "digest": template.digest,
        "skills": [skill.ref for skill in template.skills],
        "applied_at": datetime.fromtimestamp(now / 1_000_000, UTC).isoformat(),
    }


def _complete(home: Path, made: Path) -> None:
    """Move over what the home has not. Nothing is put where a link leads: the agent may have made it."""
    for path in sorted(made.iterdir()):
        there = home / path.name
        if path.is_dir() and not path.is_symlink() and there.is_dir() and not there.is_symlink():
            _complete(there, path)
        elif not os.path.lexists(there):
            path.rename(there)


# --- the runtime's own -------------------------------------------------------------------------------------------


def seed_templates() -> None:
    """Write the runtime's templates where they are missing, and again where an older version was left unchanged.

    Blocks on the disk. Does not raise: a folder that cannot be written is told when a template is wanted.
    """
    try:
        for name, files in BUILTIN_TEMPLATES.items():
            _seed(templates_folder() / name, files)
    except OSError as error:
        LOG.warning("the builtin templates could not be written to %s: %s", templates_folder(), error)


def is_as_seeded(name: str) -> bool:
    """Is one of the runtime's as the runtime wrote it, or not written yet? Blocks on the disk."""
    folder = templates_folder() / name
    if not folder.exists():
        return True
    kept = _manifest(folder)
    return kept is not None and kept.get("files") == _on_disk(folder)


def _seed(folder: Path, files: Mapping[str, str]) -> None:
    wanted = {name: _digest(text.encode()) for name, text in files.items()}
    if folder.exists():
        kept = _manifest(folder)
        if kept is None or kept.get("files") == wanted or kept.get("files") != _on_disk(folder):
            return  # somebody else's, the newest already, or changed by its owner
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent, ignore_cleanup_errors=True) as aside:
        made, before = Path(aside) / "made", Path(aside) / "before"
        made.mkdir()
        for name, text in files.items():
            (made / name).write_text(text, "utf-8")
        (made / MANIFEST).write_text(json.dumps({"version": VERSION, "files": wanted}), "utf-8")
        if folder.exists():
            folder.rename(before)
        try:
            made.rename(folder)
        except OSError:  # another runtime was faster
            if not folder.is_dir():
                raise


def _manifest(folder: Path) -> dict[str, Any] | None:
    """What the runtime wrote there; None: it did not."""
    try:
        said = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) else None


def _on_disk(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {str(path.relative_to(folder)): _digest(path.read_bytes()) for path in paths}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
