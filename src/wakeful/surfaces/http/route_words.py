"""What each route does and what its fields mean, in words for somebody who writes a client.

They are put into the description of the interface when somebody asks for it, and into the reference page.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache

WORDS: Mapping[str, str] = {
    "GET /health": "Say that the server is there. Open to all; without a token it says its version and nothing else.",
    "POST /callbacks/{mode}/{token}": "Deliver an event to a trigger. The address is the secret: no token is needed. "
    "`wake` wakes the agent, `enqueue` puts the body into its queue as a message. The same delivery again "
    "(`Idempotency-Key`, `Webhook-Id` or, where deliveries are signed, their signed id or bytes) is a `duplicate` and "
    "changes nothing.",
    # the process
    "GET /control/runtime/status": "Show how the serving process is: what its agents do, its problems, what it refused "
    "and its last failure.",
    "POST /control/runtime/shutdown": "Shut the daemon down. Agents stay as they are, and continue at its next start.",
    "GET /metrics": "Show metrics in the text format of Prometheus. Off unless `[telemetry] metrics_route` of the "
    "owner's file is true.",
    "POST /control/runtime/hold": "Pause, stop or resume all agents at once. Turns that run stop before their next "
    "step. It holds over a restart.",
    "POST /control/runtime/reload": "Read the files of the home again, and apply what changed.",
    "GET /control/runtime/files": "List the problems of files of the home, each with its line.",
    "GET /control/runtime/settings": "Show the settings in force, and where each comes from.",
    "GET /templates": "List the templates that new agents can be made from.",
    "POST /control/templates": "Add a template: a folder of the server's machine that has an AGENTS.md.",
    "GET /templates/{template_id}": "Show a template.",
    # agents
    "GET /agents/list": "List the public agents, the oldest first, with one short line for each.",
    "GET /agents": "List the agents with their control, their activity and their queue.",
    "POST /agents": "Create an agent from a definition, a template or both.",
    "GET /status": "Show the default agent: what it does, what it waits for and what it may do.",
    "GET /state": "Show everything that a screen about the default agent begins with. Continue from its events.",
    "GET /agents/{agent_id}/status": "Show an agent: what it does, what it waits for and what it may do.",
    "GET /agents/{agent_id}/state": "Show everything that a screen about an agent begins with. Continue from its "
    "events, after `event_seq`.",
    "GET /agents/{agent_id}/tools": "List the tools that an agent is offered.",
    "GET /agents/{agent_id}/events": "List the events of an agent, the oldest first. As `text/event-stream` those that "
    "come follow; `event_seq` is the id of each.",
    "GET /agents/{agent_id}/transcript": "Show the conversation of an agent with its operator: its newest turns.",
    "GET /agents/{agent_id}/briefs": "List the briefs of an agent, the newest first.",
    "GET /agents/{agent_id}/waits": "List what an agent waits for, with the deadline of each wait.",
    "GET /agents/{agent_id}/why": "Explain why an agent does what it does now, or why it does nothing.",
    "GET /why": "Explain every agent that is neither idle nor asleep.",
    "GET /why/{subject}": "Explain what became of a message, a timer, a notice or a turn.",
    "GET /agents/{agent_id}/definition": "Show the definition of an agent, the one in force or an older one.",
    "GET /agents/{agent_id}/prompt": "Show what an agent would be told if a turn of it began now.",
    "GET /agents/{agent_id}/skills": "List the skills of an agent.",
    "GET /agents/{agent_id}/skills/{skill_id}": "Show a skill of an agent.",
    "GET /agents/{agent_id}": "Show everything about an agent: identity, control, definition, model and queue.",
    "PATCH /agents/{agent_id}": "Change fields of an agent's definition. Fields that are not named stay as they are.",
    "DELETE /agents/{agent_id}": "Delete an agent that was archived. Its log stays until it reaches its age.",
    "GET /agents/{agent_id}/revisions": "List the definitions that an agent has had, the newest first.",
    "GET /agents/{agent_id}/diff": "Show what changed between two definitions of an agent.",
    "PUT /agents/{agent_id}/model": "Set the model of an agent. `null` returns to the one of its definition.",
    "POST /agents/{agent_id}/archive": "Archive an agent. It stops running and leaves the lists; its history stays.",
    "POST /control/agents/{agent_id}/pause": "Pause an agent. It keeps taking messages, and runs none.",
    "POST /control/agents/{agent_id}/stop": "Stop an agent. It refuses messages until it is resumed.",
    "POST /control/agents/{agent_id}/resume": "Resume an agent that was paused or stopped.",
    "POST /control/agents/{agent_id}/notice": "Send a notice as a test, the way the notices of this agent are sent.",
    "GET /agents/usage": "List how many turns, model calls and tokens each agent has used.",
    "GET /overview": "Show all agents on one page: how each stands, when it wakes, what it spent, what needs a person.",
    "GET /feed": "List what operators see of all agents, the oldest first. As `text/event-stream` what comes follows; "
    "the id of each entry is its cursor.",
    "GET /feed/tail": "List the newest entries of the feed, of one agent or of all.",
    # messages, work, timers, notices
    "POST /agents/{agent_id}/messages": "Send a message to an agent. The answer comes as soon as it is stored.",
    "GET /messages/{message_id}/answer": "Wait for the answer to a message. Where it is not there in time, the answer "
    "says so; ask again.",
    "GET /agents/{agent_id}/work-items": "List the work items of an agent: those that are open, or those completed.",
    "POST /control/agents/{agent_id}/work-items": "Put an objective into the work queue of an agent.",
    "GET /timers": "List the timers and schedules, with when each is due.",
    "DELETE /timers/{timer_id}": "Cancel a timer.",
    "POST /timers/{timer_id}/run": "Run a timer now, the same way as its schedule does.",
    "GET /notices": "List the notices, the newest first, with what became of each.",
    # channels
    "GET /channels": "List the channels that notices and answers go through.",
    "POST /control/channels": "Add a channel.",
    "DELETE /channels/{channel_id}": "Remove a channel. Its phones can no longer decide anything.",
    "POST /control/channels/{channel_id}/pairing": "Begin to pair a phone with a channel.",
    "POST /control/channels/{channel_id}/pair": "Pair a phone by the code that it shows.",
    "POST /control/channels/{channel_id}/test": "Send a test message through a channel.",
    # background tasks
    "GET /tasks": "List background tasks: of one agent, or those of all agents that are not over.",
    "GET /tasks/{task_id}": "Show a background task.",
    "GET /tasks/{task_id}/output": "Show both ends of the output of a task. As `text/event-stream` its lines from "
    "`after` on, those that come (`output`), and its end (`ended`).",
    "POST /tasks/{task_id}/stop": "Stop a background task.",
    # memory and workspaces
    "GET /agents/{agent_id}/memory": "List what an agent remembers: the newest entries, or those nearest to words.",
    "GET /agents/{agent_id}/memory/working": "Show the working memory of an agent.",
    "GET /agents/{agent_id}/memory/entry": "Show an entry of an agent's memory, with its source and its last use.",
    "PUT /agents/{agent_id}/memory/entry": "Correct an entry of an agent's memory.",
    "DELETE /agents/{agent_id}/memory/entry": "Have an agent forget an entry of its memory.",
    "GET /agents/{agent_id}/workspaces": "List the workspaces and worktrees of an agent.",
    "POST /agents/{agent_id}/workspaces": "Let an agent work in a folder of the server's machine.",
    "PUT /agents/{agent_id}/workspace": "Say where an agent works from its next turn on. Give exactly one of `path` "
    "and `workspace_id`.",
    "DELETE /agents/{agent_id}/workspaces/{workspace_id}": "Detach a workspace from an agent. The folder stays.",
    "POST /agents/{agent_id}/worktrees/{worktree_id}/cleanup": "Look again at a worktree that was kept, and remove it "
    "if nothing in it would be lost.",
    # triggers
    "GET /triggers": "List the triggers of agents, with how often each was called.",
    "POST /control/agents/{agent_id}/triggers": "Create a trigger: an address where programs outside deliver events.",
    "POST /control/triggers/{trigger_id}/rotate": "Give a trigger a new address. The old one is refused from now on.",
    "POST /control/triggers/{trigger_id}/revoke": "Revoke a trigger. Deliveries to its address are refused.",
    "POST /control/triggers/{trigger_id}/url": "Show the secret address of a trigger. The log says who has seen it.",
    # approvals, unknown outcomes, client requests
    "GET /approvals": "List approvals and questions: those that are pending, or those in another state.",
    "GET /approvals/rules": "List the standing answers that decide approvals by themselves.",
    "DELETE /approvals/rules/{rule_id}": "Revoke a standing answer.",
    "GET /approvals/{approval_id}": "Show an approval or a question: the call, who was told, what waits behind it.",
    "POST /approvals/{approval_id}/decision": "Approve a call as it is shown, or reject it.",
    "POST /approvals/{approval_id}/edit": "Approve a call with other arguments.",
    "POST /approvals/{approval_id}/answer": "Answer a question, or give a call its result without running it.",
    "POST /approvals/{approval_id}/always": "Approve a call, and make a rule that approves calls like it.",
    "POST /approvals/{approval_id}/reask": "Ask again about an approval whose time ran out.",
    "GET /unknown": "List the calls whose outcome is unknown after a crash.",
    "POST /calls/{call_id}/outcome": "Say whether a call with an unknown outcome happened.",
    "GET /calls/{call_id}/why": "Explain why a call was allowed, asked about or refused.",
    "GET /requests": "List the calls that wait for a client to run them, with their real arguments.",
    "GET /requests/{request_id}": "Show a call that a client is to run, with its real arguments.",
    "POST /requests/{request_id}/result": "Give the result of a call that a client ran, or the error that stopped it.",
    "POST /requests/{request_id}/timeout": "End a request as timed out: no client will run the call.",
    "POST /requests/{request_id}/cancel": "End a request as cancelled: the client does not want to run the call.",
    # chats
    "POST /agents/{agent_id}/chat": "Send a message and follow the turn that answers it. The answer is a stream: the "
    "message, then everything of that turn until it is over. After a disconnect post it again with the same key and "
    "`Last-Event-ID`.",
    "GET /turns/{turn_id}/chat": "Show the chat of a turn. As JSON what there is; as `text/event-stream` that and all "
    "that follows, until the turn is over. Arguments of what a client is to run are redacted without the scope "
    "`operate`.",
    "GET /messages/{message_id}": "Show where a message is. As `text/event-stream` the chat of the turn that takes it.",
    # turns and threads
    "GET /turns": "List turns, the newest first.",
    "GET /turns/{turn_id}": "Show a turn: its state, its calls, its usage and its cost.",
    "GET /turns/{turn_id}/events": "List the events of a turn, the oldest first. As `text/event-stream` those that "
    "come follow, until the turn is over.",
    "GET /turns/{turn_id}/tree": "Show a turn with its calls and subtasks as a tree.",
    "GET /turns/{turn_id}/lines": "List the lines of a turn in one of its views. As `text/event-stream` those that "
    "come follow, until the turn is over. An event may "
    "have several lines: the last one has its number as `id`.",
    "GET /turns/{turn_id}/wire": "List the wire messages of a turn, for clients of a host.",
    "GET /turns/{turn_id}/result": "Show the result of a turn that is over, as a document (`wakeful schema "
    "run-result`).",
    "GET /turns/{turn_id}/latency": "Show where the time of a turn went.",
    "GET /turns/{turn_id}/context": "Show what a request of a turn to its model was made of.",
    "GET /turns/{turn_id}/prompt": "Show the whole prompt of a request of a turn, with secrets redacted.",
    "GET /turns/{turn_id}/tools": "List the tools that a turn was offered.",
    "GET /turns/{turn_id}/replay": "Decide a turn once more from its log, and say whether anything differs.",
    "GET /turns/{turn_id}/artifacts": "List the artifacts of a turn.",
    "GET /artifacts/{artifact_id}": "Download an artifact, as a file to be saved; secrets in text are redacted. A "
    "reader that accepts `application/json` and nothing else gets a record, with the bytes as base64.",
    "POST /turns/{turn_id}/cancel": "Cancel a turn.",
    "POST /turns/{turn_id}/pause": "Pause a turn before its next step.",
    "POST /turns/{turn_id}/resume": "Resume a turn that was paused.",
    "POST /turns/{turn_id}/retry": "Try a failed turn again. It goes on where it failed; calls that have finished stay "
    "finished. After a limit, say what it may use in all.",
    "GET /turns/{turn_id}/replacement": "Show the message that can be sent in the place of a failed turn: what it "
    "asked, and the calls that have finished.",
    "GET /failed-turns": "List the turns that failed or reached a limit, newest first, each with its cause.",
    "POST /turns/{turn_id}/messages": "Say something to a turn that is under way. It reads it at its next request.",
    "GET /threads": "List conversations, the one that was active last first.",
    "GET /threads/{thread_id}/messages": "List the messages of a conversation: the newest page, in order; the next "
    "page is older.",
    "DELETE /agents/{agent_id}/threads/{thread_id}": "Delete a conversation. Its messages leave the store with the "
    "next pass of retention.",
    # money, workflows, the store
    "GET /budgets": "List the spending limits and what is left of each.",
    "POST /budgets/grant": "Grant more money for one window of a spending limit.",
    "GET /cost": "Show what requests to models cost, in groups. A day is one of the server's calendar.",
    "GET /workflows": "List the saved workflows.",
    "GET /workflows/{name}": "Show a saved workflow.",
    "DELETE /workflows/{name}": "Delete a saved workflow, or one revision of it.",
    "POST /workflows": "Save a workflow as a new revision.",
    "POST /workflows/{name}/runs": "Run a saved workflow with the tools, the policy and the budget of an agent.",
    "GET /workflow-runs": "List the runs of workflows, the newest first.",
    "GET /workflow-runs/{run_id}": "Show a run of a workflow.",
    "POST /workflow-runs/{run_id}/cancel": "Cancel a run of a workflow.",
    "GET /dispatches": "List the dispatches, the newest first.",
    "GET /dispatches/{run_id}": "Show a dispatch: its state and, when it is over, its result.",
    "POST /dispatches": "Hand work to an agent, which runs it as a turn of its own.",
    "POST /dispatches/{run_id}/cancel": "Cancel a dispatch.",
    "POST /packages": "Import a bundle and register its agent. Tools that it names are those of this server.",
    "GET /packages": "List the agents that came in bundles.",
    "GET /packages/{slug}": "Show an agent that came in a bundle.",
    "GET /doctor": "Examine the installation, the providers and the store. All of the store is read.",
    "GET /store/stats": "Show how large the store is, and what could be freed.",
    "GET /store/verify": "Check every log of the store against its tables.",
    "POST /control/store/compact": "Remove what has reached its age now, instead of at the next pass of retention.",
}
"""By method and path. The first sentence is the short one."""
PATH_FIELDS: Mapping[str, str] = {
    "agent_id": "The name of an agent.",
    "approval_id": "The id of an approval, or enough of its beginning.",
    "artifact_id": "The id of an artifact, or enough of its beginning.",
    "call_id": "The id of a call, or `TURN/CALL` with the slash encoded as `%2F`.",
    "channel_id": "The name of a channel.",
    "message_id": "The id of a message.",
    "mode": "`wake` or `enqueue`, as the address says.",
    "name": "The name or the id of a workflow.",
    "request_id": "The id of a request to a client, or enough of its beginning.",
    "rule_id": "The id of a standing answer.",
    "run_id": "The id of a run, or enough of its beginning.",
    "skill_id": "The name of a skill.",
    "slug": "The name of an agent of a package.",
    "subject": "The id of a message, timer, notice or turn, or enough of its beginning; also the key of a turn, or the "
    "name of a timer.",
    "task_id": "The id of a task, or enough of its beginning.",
    "template_id": "The id of a template.",
    "thread_id": "The name of a conversation.",
    "timer_id": "The id of a timer, enough of its beginning, or its name.",
    "token": "The secret part of the address.",
    "trigger_id": "The id of a trigger, or enough of its beginning; `AGENT/NAME` with the slash encoded as `%2F`; or "
    "AGENT for its default trigger.",
    "turn_id": "The id of a turn, enough of its beginning, or its key.",
    "workspace_id": "The id of a workspace.",
    "worktree_id": "The id of a worktree.",
}
"""Names in a path."""
FIELDS: Mapping[str, str] = {
    "agent": "The name of an agent.",
    "arguments": "Arguments, by name.",
    "code": "The code that the phone shows.",
    "control": "What all agents are to be.",
    "decision": "The decision.",
    "definition": "The fields of an agent; docs/reference/agents.md has all of them.",
    "changes": "The fields that change, with their new values.",
    "display": "How much is shown: `info`, `verbose` or `debug`.",
    "key": "The same key again is the same request. Also as the header `Idempotency-Key`.",
    "model": "PROVIDER:MODEL.",
    "new": "The newer revision. Without it, the one in force.",
    "old": "The older revision. Without it, the one before `new`.",
    "objective": "What is to be achieved.",
    "priority": "How urgent it is. `interject` is read by a turn that is under way.",
    "prompt": "Words for the agent nodes of the graph.",
    "purpose": "What the address is for; it is on record.",
    "reason": "Why. It is on record.",
    "ref": "The handle of an entry, as the list of entries shows it.",
    "reveal": "Show secrets instead of [redacted]. Needs the scope `reveal`.",
    "revision": "One revision. Without it, the newest.",
    "say": "Words of the owner that every delivery brings.",
    "signature": "How deliveries are signed. Without it they are not.",
    "signing_env": "The environment variable of the server that holds the secret of the signature.",
    "since": "Microseconds since 1970. Without it, everything.",
    "state": "Turns in this state. Without it, in any.",
    "step": "The number of a request to the model, from 1. Without it, the newest.",
    "text": "The words.",
    "thread": "The name of a conversation.",
    "turn": "The id of a turn, enough of its beginning, or its key.",
    "view": "Which view of the turn.",
}
"""Fields of queries and bodies that mean the same wherever they stand, and that their request says nothing about."""


def short_words(method: str, path: str) -> str:
    """The first sentence about a route, without its full stop."""
    return WORDS[f"{method} {path}"].partition(". ")[0].removesuffix(".")


def field_words(request: type, name: str) -> str:
    """What a field of a request is; what its source says below it goes before what is said here."""
    return _own_words(request).get(name) or FIELDS.get(name, "")


@cache
def _own_words(request: type) -> Mapping[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(request))
    except OSError:  # a program without its source describes less of itself
        return {}
    (made,) = ast.parse(source).body
    assert isinstance(made, ast.ClassDef)
    found = {}
    for field, below in zip(made.body, made.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            found[field.target.id] = " ".join(str(below.value.value).split())
    return found
