"""The tools for memory, as a model is shown them. What a call of one does is in `engine.memory_desk`."""

from collections.abc import Mapping
from typing import Any, Final

from wakeful.contracts.memory import MAX_CHARS, MAX_QUERY, MAX_RESULTS, MEMORY_GET, MEMORY_SEARCH, SHOWN_CHARS
from wakeful.contracts.tools import ToolDeclaration


def _declared(name: str, description: str, properties: dict[str, Any], required: str) -> ToolDeclaration:
    return ToolDeclaration(
        name=name,
        description=description,
        input_schema={
            "type": "object",
            "properties": properties,
            "required": [required],
            "additionalProperties": False,
        },
        effect="pure",
        parallel_safe=True,
        child_safe=False,
        permission_class="knowledge",
        content=("query",),
    )


DECLARATIONS: Final[Mapping[str, ToolDeclaration]] = {
    each.name: each
    for each in (
        _declared(
            MEMORY_SEARCH,
            "Search your memory: notes about yourself and your operator, your briefs, work items and earlier stretches "
            "of work. Project files are not in it. Each result has a source_ref; memory_get shows the whole entry.",
            {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_QUERY,
                    "description": "What to look for.",
                },
                "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_RESULTS},
                "include_all_workspaces": {
                    "type": "boolean",
                    "description": "Also what was written while you worked in other workspaces.",
                },
            },
            "query",
        ),
        _declared(
            MEMORY_GET,
            "The original words of one memory entry. Copy source_ref from a result of memory_search.",
            {
                "source_ref": {"type": "string", "minLength": 1, "maxLength": 200},
                "max_chars": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_CHARS,
                    "description": f"How much of it is shown; {SHOWN_CHARS} without it.",
                },
            },
            "source_ref",
        ),
    )
}
