"""Work items made by hand."""

from typing import Any

from wakeful.contracts.work_items import ActiveWait, WaitKind, WorkItem

NOON = 1_800_000_000_000_000


def item(name: str = "wi_1", **fields: Any) -> WorkItem:
    given: dict[str, Any] = {
        "work_item_id": name,
        "agent_id": "agent_1",
        "thread_id": "main",
        "workspace_id": "",
        "objective": f"objective of {name}",
        "state": "open",
        "plan_status": "draft",
        "todo_list": (),
        "blocked_by": None,
        "recheck_at": None,
        "recheck_message_id": "",
        "recheck_consumed_at": None,
        "triggered_at": None,
        "report_event_id": "",
        "derived_from": "operator_instruction",
        "turns": (),
        "idle_turns": 0,
        "plan_turns": 0,
        "created_by": "agent",
        "created_at": NOON,
        "updated_at": NOON,
        "completed_at": None,
    }
    return WorkItem(**{**given, **fields})


def wait(kind: WaitKind, name: str = "wi_1", reason: str = "CI is green") -> ActiveWait:
    return ActiveWait(f"wait_{kind}", name, kind, reason)
