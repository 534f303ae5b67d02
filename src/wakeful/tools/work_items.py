"""The tools for work items, as a model is shown them. What a call of one does is in `engine.work_items`.

They change records of the runtime and nothing else: a change stands in one commit with the result of its call.
"""

from collections.abc import Mapping
from typing import Any, Final, get_args

from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.work_items import (
    COMPLETE_WORK_ITEM,
    CREATE_WORK_ITEM,
    GET_WORK_ITEM,
    LIST_WORK_ITEMS,
    MAX_BLOCKER,
    MAX_OBJECTIVE,
    MAX_PLAN,
    MAX_TODO_ITEMS,
    MAX_TODO_TEXT,
    NOTIFY_OPERATOR,
    PICK_WORK_ITEM,
    UPDATE_WORK_ITEM,
    PlanStatus,
    TodoState,
)

_ID = {"type": "string", "minLength": 1, "maxLength": 200, "description": "The work item, such as wi_3f2a."}
_OBJECTIVE = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_OBJECTIVE,
    "description": "What is to be reached, in words that hold without this conversation.",
}
_PLAN_STATUS = {
    "enum": list(get_args(PlanStatus)),
    "description": "draft: the plan is not settled. ready: it is. needs_input: the operator has to say something.",
}
_TODO_LIST = {
    "type": "array",
    "maxItems": MAX_TODO_ITEMS,
    "items": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 1, "maxLength": MAX_TODO_TEXT},
            "state": {"enum": list(get_args(TodoState))},
        },
        "required": ["text"],
        "additionalProperties": False,
    },
    "description": "The whole checklist: it takes the place of the one before.",
}


def _declared(name: str, description: str, properties: dict[str, Any], *required: str) -> ToolDeclaration:
    return ToolDeclaration(
        name=name,
        description=description,
        input_schema={
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
        effect="pure",
        parallel_safe=False,
        child_safe=False,
        permission_class="knowledge",
        content=("objective", "plan", "todo_list", "blocked_by", "text"),
    )


DECLARATIONS: Final[Mapping[str, ToolDeclaration]] = {
    each.name: each
    for each in (
        _declared(
            CREATE_WORK_ITEM,
            "Take on an objective that outlasts this conversation. It becomes an open work item; pick it to work on "
            "it. Its plan is a file that you edit from then on.",
            {
                "objective": _OBJECTIVE,
                "plan_status": _PLAN_STATUS,
                "plan": {"type": "string", "maxLength": MAX_PLAN, "description": "The plan to begin with, as prose."},
                "todo_list": _TODO_LIST,
            },
            "objective",
        ),
        _declared(
            PICK_WORK_ITEM,
            "Make an open work item your current one. Turns that follow begin with it until it is completed or you "
            "pick another.",
            {"work_item_id": _ID},
            "work_item_id",
        ),
        _declared(
            UPDATE_WORK_ITEM,
            "Change what an open work item says: bookkeeping after material progress (a file was changed, something "
            "was verified, a blocker was found, a question was answered), not a log of what you do. With blocked_by "
            "you say what it waits for, and are reminded after recheck_after; null clears it.",
            {
                "work_item_id": _ID,
                "objective": _OBJECTIVE,
                "plan_status": _PLAN_STATUS,
                "todo_list": _TODO_LIST,
                "blocked_by": {
                    "type": ["string", "null"],
                    "minLength": 1,
                    "maxLength": MAX_BLOCKER,
                    "description": "What has to happen before the item can go on; null: nothing any more.",
                },
                "recheck_after": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 31_536_000_000,
                    "description": "Milliseconds until you are reminded of the blocker, once; one hour without it.",
                },
            },
            "work_item_id",
        ),
        _declared(
            COMPLETE_WORK_ITEM,
            "Say that a work item is done. The text of the same reply is its report to the operator: say what changed, "
            "how it was checked and what is left open, and complete one item a reply.",
            {"work_item_id": _ID},
            "work_item_id",
        ),
        _declared(
            GET_WORK_ITEM,
            "A work item as it is: record, readiness, where its plan is and how that begins, and the report of a "
            "completed one.",
            {"work_item_id": _ID},
            "work_item_id",
        ),
        _declared(
            LIST_WORK_ITEMS,
            "Your work items, the newest first. queued: open, not current and not blocked. blocked: open, with a "
            "blocker. Without a view: all that are open.",
            {
                "view": {"enum": ["open", "queued", "blocked", "completed"]},
                "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            },
        ),
        _declared(
            NOTIFY_OPERATOR,
            "Tell the operator something before you are done: what you found, what is late, what you decided. It is "
            "kept as a brief. Your final answer needs no such call.",
            {"text": {"type": "string", "minLength": 1, "maxLength": 4_000}},
            "text",
        ),
    )
}
