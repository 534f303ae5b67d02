"""Where each operation is over HTTP. `surfaces/http` makes its routes of it, and a client its requests.

A name in a path is a field of the request: `{agent_id}` is `agent`. Of the other fields, those of a GET are its query
and those of everything else its body. Who acts is never a field: it is the caller that was authenticated. Reading needs
`observe`, everything else, `/control` and the real arguments of calls need `operate`.
"""

import dataclasses
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeAlias, get_type_hints

from wakeful.service.operations import (
    agents,
    answers,
    approvals,
    artifacts,
    calls,
    channels,
    chat,
    client_requests,
    decisions,
    dispatches,
    inspection,
    memory,
    operator_feed,
    overview,
    process,
    retries,
    runtime,
    runtime_agents,
    settings,
    skills,
    spending,
    steering,
    subjects,
    tasks,
    templates,
    threads,
    timers,
    triggers,
    turn_reports,
    turns,
    upkeep,
    work,
    workflow_runs,
    workflows,
    workspaces,
)
from wakeful.service.operations.operation import IDENTITY, Operation, Scope

Method: TypeAlias = Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
_NAMES = {
    "DisplayMode": "wakeful.views.presentation.display_modes",
    "Grouping": "wakeful.service.queries.costs",
    "Money": "wakeful.contracts.budgets",
    "Period": "wakeful.contracts.spending",
    "Retention": "wakeful.contracts.retention",
    "TurnState": "wakeful.ports",
    "TurnView": "wakeful.views.turn_lines",
}
"""Where names are from that requests load for the types alone."""


class HttpRoute(NamedTuple):
    """One operation over HTTP."""

    method: Method
    path: str
    operation: Operation[Any, Any]
    fixed: Mapping[str, Any] = {}
    """Fields that this way of asking sets by itself."""
    look: str = ""
    """Where somebody sees whether it had its effect, when it was cut off and may not be done again by itself."""

    needs: Scope | None = None
    """A scope beyond that of the operation."""

    @property
    def scope(self) -> Scope:
        return self.needs or ("operate" if self.path.startswith("/control") else self.operation.scope)


class RequestField(NamedTuple):
    """One field of a request, as a caller gives it."""

    name: str
    hint: Any
    default: Any
    """`MISSING`: it has to be given."""
    says: str = ""


def fields_of(route: HttpRoute) -> list[RequestField]:
    """What a caller gives, in order. Who acts, and what this way of asking sets, are not among it."""
    request = route.operation.request
    names = {name: getattr(import_module(where), name) for name, where in _NAMES.items()}
    hints = get_type_hints(request, localns=names)
    found = []
    for each in dataclasses.fields(request):
        if each.name in route.fixed or is_identity(each.name, hints[each.name]):
            continue
        default = each.default_factory() if each.default_factory is not dataclasses.MISSING else each.default
        found.append(RequestField(each.name, hints[each.name], default))
    return found


def is_identity(name: str, hint: Any) -> bool:
    """Does the field say who acts?"""
    return name in IDENTITY and hint in (str, str | None)


def request_of(route: HttpRoute, given: Mapping[str, Any], caller: str) -> Any:
    """The request, in the caller's name."""
    request = route.operation.request
    acts = dict.fromkeys(_identities(request), caller)  # type: ignore[arg-type]  # a class can be hashed
    return request(**{**route.fixed, **given, **acts})


@cache
def _identities(request: type) -> tuple[str, ...]:
    """The fields of a request that say who acts."""
    hints = get_type_hints(request, localns=dict.fromkeys(_NAMES, object))
    return tuple(each.name for each in dataclasses.fields(request) if is_identity(each.name, hints[each.name]))


def field_of_path(route: HttpRoute, name: str) -> str:
    """The field that a name in the path stands for: `agent_id` is `agent`."""
    names = {each.name for each in dataclasses.fields(route.operation.request)}
    return name if name in names else name.removesuffix("_id")


_AGENT = "/agents/{agent_id}"
_CONTROL = "/control/agents/{agent_id}"
_TURNS = "/turns/{turn_id}"
_APPROVAL = "/approvals/{approval_id}"
_TRIGGER = "/control/triggers/{trigger_id}"
_HTTP = {"by_http": True}
_AT_ONCE = {"seconds": None}
_NO_WORDS = {"seconds": None, "reason": ""}
_LATE = {"cancelled": False}
_CANCELLED = {"cancelled": True}
_FROM_THE_NEWEST = {"before": None}
"""The cursor alone says where a page begins."""
_OWNERS = {"retention": None}
"""What the owner's file says holds."""
ROUTES = (
    # the process
    HttpRoute("GET", "/control/runtime/status", process.PROCESS_STATUS),
    HttpRoute("POST", "/control/runtime/shutdown", process.SHUT_DOWN, look="/control/runtime/status"),
    HttpRoute("GET", "/metrics", process.METRICS),
    HttpRoute("POST", "/control/runtime/hold", runtime.HOLD_ALL),
    HttpRoute("POST", "/control/runtime/reload", runtime.RELOAD),
    HttpRoute("GET", "/control/runtime/files", runtime.FILE_PROBLEMS),
    HttpRoute("GET", "/control/runtime/settings", settings.SHOW_SETTINGS),
    HttpRoute("GET", "/templates", templates.LIST_TEMPLATES),
    HttpRoute("POST", "/control/templates", templates.ADD_TEMPLATE),
    HttpRoute("GET", "/templates/{template_id}", templates.SHOW_TEMPLATE),
    # agents
    HttpRoute("GET", "/agents/list", inspection.LIST_ENTRIES),
    HttpRoute("GET", "/agents", runtime.LIST_AGENTS),
    HttpRoute("POST", "/agents", runtime_agents.CREATE_AGENT, look="/agents"),
    HttpRoute("GET", "/status", inspection.SUMMARIZE_AGENT),
    HttpRoute("GET", "/state", inspection.SNAPSHOT_AGENT),
    HttpRoute("GET", f"{_AGENT}/status", inspection.SUMMARIZE_AGENT),
    HttpRoute("GET", f"{_AGENT}/state", inspection.SNAPSHOT_AGENT),
    HttpRoute("GET", f"{_AGENT}/tools", inspection.LIST_AGENT_TOOLS),
    HttpRoute("GET", f"{_AGENT}/events", operator_feed.REPLAY_EVENTS),
    HttpRoute("GET", f"{_AGENT}/transcript", operator_feed.SHOW_TRANSCRIPT),
    HttpRoute("GET", f"{_AGENT}/briefs", inspection.LIST_BRIEFS),
    HttpRoute("GET", f"{_AGENT}/waits", inspection.LIST_WAITS),
    HttpRoute("GET", f"{_AGENT}/why", runtime.EXPLAIN_AGENT),
    HttpRoute("GET", "/why", subjects.EXPLAIN_ALL),
    HttpRoute("GET", "/why/{subject}", subjects.EXPLAIN_SUBJECT),
    HttpRoute("GET", f"{_AGENT}/definition", runtime_agents.SHOW_DEFINITION),
    HttpRoute("GET", f"{_AGENT}/prompt", skills.PREVIEW_PROMPT),
    HttpRoute("GET", f"{_AGENT}/skills", skills.LIST_SKILLS),
    HttpRoute("GET", f"{_AGENT}/skills/{{skill_id}}", skills.SHOW_SKILL),
    HttpRoute("GET", _AGENT, runtime_agents.SHOW_AGENT),
    HttpRoute("PATCH", _AGENT, runtime_agents.UPDATE_AGENT),
    HttpRoute("DELETE", _AGENT, runtime_agents.DELETE_AGENT),
    HttpRoute("GET", f"{_AGENT}/revisions", runtime_agents.LIST_REVISIONS),
    HttpRoute("GET", f"{_AGENT}/diff", runtime_agents.SHOW_CHANGE),
    HttpRoute("PUT", f"{_AGENT}/model", runtime_agents.SET_MODEL),
    HttpRoute("POST", f"{_AGENT}/archive", runtime_agents.ARCHIVE_AGENT),
    HttpRoute("POST", f"{_CONTROL}/pause", runtime.PAUSE_AGENT),
    HttpRoute("POST", f"{_CONTROL}/stop", runtime.STOP_AGENT, fixed=_AT_ONCE),
    HttpRoute("POST", f"{_CONTROL}/resume", runtime.RESUME_AGENT, fixed=_NO_WORDS),
    HttpRoute("POST", f"{_CONTROL}/notice", runtime.TEST_NOTICE, fixed=_NO_WORDS, look="/notices"),
    HttpRoute("GET", "/agents/usage", agents.STATUS),
    HttpRoute("GET", overview.PATH, overview.OVERVIEW),
    HttpRoute("GET", "/feed", operator_feed.LIST_FEED),
    HttpRoute("GET", "/feed/tail", operator_feed.SHOW_TAIL),
    # messages, work, timers, notices
    HttpRoute("POST", f"{_AGENT}/messages", runtime.SEND, fixed=_HTTP, look=f"{_AGENT}/transcript"),
    HttpRoute("GET", "/messages/{message_id}/answer", answers.ANSWER),
    HttpRoute("GET", f"{_AGENT}/work-items", work.LIST_WORK),
    HttpRoute("POST", f"{_CONTROL}/work-items", work.ENQUEUE_WORK, look=f"{_AGENT}/work-items"),
    HttpRoute("GET", "/timers", runtime.LIST_TIMERS),
    HttpRoute("DELETE", "/timers/{timer_id}", runtime.CANCEL_TIMER),
    HttpRoute("POST", "/timers/{timer_id}/run", timers.RUN_TIMER, look="/timers"),
    HttpRoute("GET", "/notices", runtime.LIST_NOTICES),
    # channels
    HttpRoute("GET", "/channels", channels.LIST_CHANNELS),
    HttpRoute("POST", "/control/channels", channels.ADD_CHANNEL, look="/channels"),
    HttpRoute("DELETE", "/channels/{channel_id}", channels.REMOVE_CHANNEL, look="/channels"),
    HttpRoute("POST", "/control/channels/{channel_id}/pairing", channels.OPEN_PAIRING, look="/channels"),
    HttpRoute("POST", "/control/channels/{channel_id}/pair", channels.PAIR_CHANNEL, look="/channels"),
    HttpRoute("POST", "/control/channels/{channel_id}/test", channels.TEST_CHANNEL, look="/channels"),
    # background tasks
    HttpRoute("GET", "/tasks", tasks.LIST_TASKS),
    HttpRoute("GET", "/tasks/{task_id}", tasks.SHOW_TASK),
    HttpRoute("GET", "/tasks/{task_id}/output", tasks.SHOW_OUTPUT),
    HttpRoute("POST", "/tasks/{task_id}/stop", tasks.STOP_TASK),
    # memory and workspaces
    HttpRoute("GET", f"{_AGENT}/memory", memory.LIST_MEMORY),
    HttpRoute("GET", f"{_AGENT}/memory/working", memory.SHOW_WORKING_MEMORY),
    HttpRoute("GET", f"{_AGENT}/memory/entry", memory.SHOW_MEMORY),
    HttpRoute("PUT", f"{_AGENT}/memory/entry", memory.EDIT_MEMORY),
    HttpRoute("DELETE", f"{_AGENT}/memory/entry", memory.FORGET_MEMORY),
    HttpRoute("GET", f"{_AGENT}/workspaces", workspaces.LIST_WORKSPACES),
    HttpRoute("POST", f"{_AGENT}/workspaces", workspaces.ATTACH_WORKSPACE),
    HttpRoute("PUT", f"{_AGENT}/workspace", workspaces.USE_WORKSPACE, look=f"{_AGENT}/workspaces"),
    HttpRoute("DELETE", f"{_AGENT}/workspaces/{{workspace_id}}", workspaces.DETACH_WORKSPACE),
    HttpRoute("POST", f"{_AGENT}/worktrees/{{worktree_id}}/cleanup", workspaces.CLEAN_UP_WORKTREE),
    # triggers
    HttpRoute("GET", "/triggers", triggers.LIST_TRIGGERS),
    HttpRoute("POST", f"{_CONTROL}/triggers", triggers.CREATE_TRIGGER, look="/triggers"),
    HttpRoute("POST", f"{_TRIGGER}/rotate", triggers.ROTATE_TRIGGER, look="/triggers"),
    HttpRoute("POST", f"{_TRIGGER}/revoke", triggers.REVOKE_TRIGGER),
    HttpRoute("POST", f"{_TRIGGER}/url", triggers.SHOW_TRIGGER_URL),
    # approvals, unknown outcomes, client requests
    HttpRoute("GET", "/approvals", decisions.SEARCH_APPROVALS),
    HttpRoute("GET", "/approvals/rules", approvals.LIST_RULES),
    HttpRoute("DELETE", "/approvals/rules/{rule_id}", approvals.REVOKE_RULE),
    HttpRoute("GET", _APPROVAL, approvals.SHOW_APPROVAL),
    HttpRoute("POST", f"{_APPROVAL}/decision", decisions.DECIDE_PLAINLY),
    HttpRoute("POST", f"{_APPROVAL}/edit", decisions.DECIDE_BY_EDIT),
    HttpRoute("POST", f"{_APPROVAL}/answer", decisions.DECIDE_BY_ANSWER),
    HttpRoute("POST", f"{_APPROVAL}/always", decisions.DECIDE_FOR_ALWAYS),
    HttpRoute("POST", f"{_APPROVAL}/reask", approvals.REASK, look="/approvals"),
    HttpRoute("GET", "/unknown", calls.LIST_UNKNOWN),
    HttpRoute("POST", "/calls/{call_id}/outcome", calls.RESOLVE),
    HttpRoute("GET", "/calls/{call_id}/why", calls.EXPLAIN),
    # with their real arguments, so they are for those who may answer; chats and events have them redacted
    HttpRoute("GET", "/requests", client_requests.LIST_REQUESTS, needs="operate"),
    HttpRoute("GET", "/requests/{request_id}", client_requests.SHOW_REQUEST, needs="operate"),
    HttpRoute("POST", "/requests/{request_id}/result", client_requests.SUBMIT_RESULT),
    HttpRoute("POST", "/requests/{request_id}/timeout", client_requests.END_REQUEST, fixed=_LATE),
    HttpRoute("POST", "/requests/{request_id}/cancel", client_requests.END_REQUEST, fixed=_CANCELLED),
    # chats
    HttpRoute("POST", f"{_AGENT}/chat", chat.SAY, look=f"{_AGENT}/transcript"),
    HttpRoute("GET", f"{_TURNS}/chat", chat.SHOW_CHAT),
    HttpRoute("GET", "/messages/{message_id}", chat.SHOW_MESSAGE),
    # turns and threads
    HttpRoute("GET", "/turns", turns.LIST_TURNS),
    HttpRoute("GET", _TURNS, turns.SHOW_TURN),
    HttpRoute("GET", f"{_TURNS}/events", turns.LIST_EVENTS),
    HttpRoute("GET", f"{_TURNS}/tree", turn_reports.SHOW_TREE),
    HttpRoute("GET", f"{_TURNS}/lines", turn_reports.LIST_LINES),
    HttpRoute("GET", f"{_TURNS}/wire", turn_reports.SHOW_WIRE),
    HttpRoute("GET", f"{_TURNS}/result", turn_reports.SHOW_RESULT),
    HttpRoute("GET", f"{_TURNS}/latency", turn_reports.SHOW_LATENCY),
    HttpRoute("GET", f"{_TURNS}/context", turn_reports.SHOW_CONTEXT),
    HttpRoute("GET", f"{_TURNS}/prompt", turn_reports.SHOW_PROMPT),
    HttpRoute("GET", f"{_TURNS}/tools", turn_reports.SHOW_TOOLS),
    HttpRoute("GET", f"{_TURNS}/replay", turn_reports.REPLAY),
    HttpRoute("GET", f"{_TURNS}/artifacts", artifacts.LIST_ARTIFACTS),
    HttpRoute("GET", "/artifacts/{artifact_id}", artifacts.SHOW_ARTIFACT),
    HttpRoute("POST", f"{_TURNS}/cancel", steering.CANCEL),
    HttpRoute("POST", f"{_TURNS}/pause", steering.PAUSE),
    HttpRoute("POST", f"{_TURNS}/resume", steering.UNPAUSE),
    HttpRoute("POST", f"{_TURNS}/retry", retries.RETRY, look=_TURNS),
    HttpRoute("GET", f"{_TURNS}/replacement", retries.SHOW_REPLACEMENT),
    HttpRoute("GET", "/failed-turns", retries.LIST_FAILED),
    HttpRoute("POST", f"{_TURNS}/messages", steering.INTERJECT, look=f"{_TURNS}/events"),
    HttpRoute("GET", "/threads", threads.LIST_THREADS, fixed=_FROM_THE_NEWEST),
    HttpRoute("GET", "/threads/{thread_id}/messages", threads.LIST_MESSAGES),
    HttpRoute("DELETE", f"{_AGENT}/threads/{{thread_id}}", threads.DELETE_THREAD),
    # money, workflows, the store
    HttpRoute("GET", "/budgets", spending.LIST_SPENDING),
    HttpRoute("POST", "/budgets/grant", spending.GRANT, look="/budgets"),
    HttpRoute("GET", "/cost", spending.SHOW_COSTS),
    HttpRoute("GET", "/workflows", workflows.LIST_WORKFLOWS),
    HttpRoute("GET", "/workflows/{name}", workflows.SHOW_WORKFLOW),
    HttpRoute("DELETE", "/workflows/{name}", workflows.DELETE_WORKFLOW),
    HttpRoute("POST", "/workflows", workflow_runs.SAVE_WORKFLOW, look="/workflows"),
    HttpRoute("POST", "/workflows/{name}/runs", workflow_runs.START_WORKFLOW, look="/turns"),
    HttpRoute("GET", "/workflow-runs", workflow_runs.LIST_WORKFLOW_RUNS, fixed=_FROM_THE_NEWEST),
    HttpRoute("GET", "/workflow-runs/{run_id}", workflow_runs.SHOW_WORKFLOW_RUN),
    HttpRoute("POST", "/workflow-runs/{run_id}/cancel", workflow_runs.CANCEL_WORKFLOW_RUN),
    HttpRoute("GET", "/dispatches", dispatches.LIST_DISPATCHES),
    HttpRoute("GET", "/dispatches/{run_id}", dispatches.SHOW_DISPATCH),
    HttpRoute("POST", "/dispatches", dispatches.START_DISPATCH, look="/dispatches"),
    HttpRoute("POST", "/dispatches/{run_id}/cancel", dispatches.CANCEL_DISPATCH),
    HttpRoute("POST", "/packages", dispatches.IMPORT_BUNDLE, look="/packages"),
    HttpRoute("GET", "/packages", dispatches.LIST_IMPORTED),
    HttpRoute("GET", "/packages/{slug}", dispatches.SHOW_IMPORTED),
    HttpRoute("GET", "/doctor", process.DOCTOR),
    HttpRoute("GET", "/store/stats", upkeep.STATS, fixed=_OWNERS),
    HttpRoute("GET", "/store/verify", upkeep.VERIFY),
    HttpRoute("POST", "/control/store/compact", upkeep.COMPACT, fixed=_OWNERS),
)
WITHOUT_ROUTE: Mapping[str, str] = {
    "approvals.list": "GET /approvals asks by status",
    "approvals.decide": "each way to decide has a path of its own",
    "log.check": "it reads the whole log; it is for the command line",
    "runtime.runnable": "it is for a process that runs the agent itself",
    "store.would_free": "GET /store/stats says what could be freed",
    "store.export": "it writes a file of the machine that runs it",
    "store.import": "it reads a file of the machine that runs it",
    "triggers.deliver": "deliveries come to the secret address of the trigger",
}
"""Operations that are not over HTTP, and why."""
