"""What may be asked about templates of agents' homes: which there are, what one says, and to take in another.

They are folders of the machine that runs the agents, and belong to no store.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wakeful.contracts.errors import TemplateNotFound
from wakeful.service.operations.operation import NoRequest, OpenStore, Operation, check_no_tool

if TYPE_CHECKING:
    from wakeful.views.template_records import TemplateRecord, TemplateText

_RECORDS = "wakeful.views.template_records"


@dataclass(frozen=True, slots=True)
class TemplateName:
    """A template by its id, or the absolute path of its folder."""

    template: str


@dataclass(frozen=True, slots=True)
class NewTemplate:
    """A folder with an AGENTS.md that is to be a template, by its absolute path; its name is that of the folder."""

    path: str
    """The absolute path of the folder."""
    name: str | None = None
    """Its name. None: that of the folder."""


async def _list(opened: OpenStore, asked: NoRequest) -> "list[TemplateRecord]":
    from wakeful.runtime.template_catalogue import list_templates

    return await asyncio.to_thread(list_templates)


async def _show(opened: OpenStore, asked: TemplateName) -> "TemplateText":
    from wakeful.runtime.template_catalogue import show_template

    if opened.living is not None and "/" in asked.template:
        raise TemplateNotFound(
            f"a runtime shows templates by their ids, and {asked.template!r:.80} is a path",
            "GET /templates lists them.",
        )
    return await asyncio.to_thread(show_template, asked.template)


async def _add(opened: OpenStore, asked: NewTemplate) -> "TemplateRecord":
    from wakeful.runtime.template_catalogue import add_template

    check_no_tool("templates")
    return await asyncio.to_thread(add_template, asked.path, asked.name)


LIST_TEMPLATES = Operation("runtime.templates", "observe", NoRequest, f"{_RECORDS}.TemplateRecord", _list, many=True)
SHOW_TEMPLATE = Operation("runtime.template", "observe", TemplateName, f"{_RECORDS}.TemplateText", _show)
ADD_TEMPLATE = Operation(
    "runtime.add_template", "operate", NewTemplate, f"{_RECORDS}.TemplateRecord", _add, repeatable=True
)
