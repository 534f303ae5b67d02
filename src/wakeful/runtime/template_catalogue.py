"""The templates that are at hand, each with where it comes from, and new ones from folders of this machine.

A template is its `AGENTS.md` and its `skills.json`; nothing else of a folder is taken. One that is there is never
written over: another folder under the same name is refused.
"""

import tempfile
from pathlib import Path

from wakeful.contracts.errors import InvalidRequest
from wakeful.guidance import AGENTS_MD
from wakeful.runtime.agent_templates import (
    ID,
    SKILLS_JSON,
    Template,
    is_as_seeded,
    read_template,
    templates_folder,
    unseeded,
)
from wakeful.runtime.builtin_templates import BUILTIN_TEMPLATES
from wakeful.views.template_records import TemplateOrigin, TemplateRecord, TemplateText

PREFIX = "wakeful-"
"""Ids that begin with it are the runtime's."""


def list_templates() -> list[TemplateRecord]:
    """By id. One that cannot be used is listed with the reason. Blocks on the disk."""
    there = {path.name for path in templates_folder().glob("*/") if ID.fullmatch(path.name)}
    return [_record(name) for name in sorted(there | set(BUILTIN_TEMPLATES))]


def show_template(name: str) -> TemplateText:
    """A template by its id or its path. Blocks on the disk. Raises InvalidRequest with what is wrong with it."""
    found = _read(name)
    return TemplateText(**_of(found).model_dump(), text=found.guidance)


def add_template(path: str, name: str | None) -> TemplateRecord:
    """Take in the template of a folder, under its name or another one. Blocks on the disk. Raises InvalidRequest."""
    if "://" not in path and not Path(path).is_absolute():
        raise InvalidRequest(
            f"{path!r} is not the absolute path of a folder", "Give the path from the root on: /home/ana/desk"
        )
    found = read_template(path)
    chosen = name if name is not None else found.source.name
    if not ID.fullmatch(chosen):
        raise InvalidRequest(
            f"{chosen!r} cannot be the id of a template",
            "Give another: letters, digits, dots, dashes, up to 128 of them.",
        )
    if chosen.startswith(PREFIX):
        raise InvalidRequest(f"ids that begin with {PREFIX!r} are the runtime's", "Give another: --name NAME")
    folder = templates_folder() / chosen
    if folder.exists():
        if _is_same(folder, found.source):
            return _record(chosen)
        raise InvalidRequest(
            f"another template is called {chosen!r} already: {folder}",
            "Give another name, or remove that folder.",
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent, ignore_cleanup_errors=True) as aside:
            made = Path(aside) / "made"
            made.mkdir()
            for file in _files(found.source):
                (made / file.name).write_bytes(file.read_bytes())
            made.rename(folder)
    except OSError as error:
        raise InvalidRequest(f"{folder} cannot be written: {error}", "Free some space, or repair the folder.") from None
    return _record(chosen)


def _read(name: str) -> Template:
    if name in BUILTIN_TEMPLATES and not (templates_folder() / name).exists():
        return unseeded(name)
    return read_template(name)


def _record(name: str) -> TemplateRecord:
    try:
        return _of(_read(name))
    except InvalidRequest as error:
        where = str(templates_folder() / name)
        return TemplateRecord(template=name, path=where, origin=_origin(name), problem=f"{error.message}. {error.hint}")


def _of(found: Template) -> TemplateRecord:
    return TemplateRecord(
        template=found.selector,
        path=str(found.source),
        origin=_origin(found.selector),
        skills=tuple(skill.ref for skill in found.skills),
    )


def _origin(name: str) -> TemplateOrigin:
    if name not in BUILTIN_TEMPLATES:
        return "own"
    return "builtin" if is_as_seeded(name) else "changed"


def _files(folder: Path) -> list[Path]:
    return [path for path in (folder / AGENTS_MD, folder / SKILLS_JSON) if path.is_file()]


def _is_same(one: Path, other: Path) -> bool:
    return [(path.name, path.read_bytes()) for path in _files(one)] == [
        (path.name, path.read_bytes()) for path in _files(other)
    ]
