"""Facts of a turn to its execution tree, and the facts of a thread to what a client shows after a reload.

The tree is not kept anywhere: it follows from the log, which is its storage, for a turn that completed as for one that
a limit, an error or a cancel ended. Secrets are learned from all the facts before any preview is made of one.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from wakeful.contracts.envelope import Fact, StoredFact, once
from wakeful.contracts.events import (
    AssistantRecorded,
    MessageAdmitted,
    SubagentStarted,
    Terminal,
    ToolArgs,
    ToolFailed,
    ToolResult,
    ToolStarted,
    TurnInterjected,
    TurnRetried,
)
from wakeful.contracts.tools import PREVIEW_CHARS
from wakeful.contracts.values import Value
from wakeful.decisions.run_secrets import RunSecrets
from wakeful.views.cost import decimal_text
from wakeful.views.mapping import ROOM, TURN_STATUS, ended, is_conversations, is_roots
from wakeful.views.model_calls import CallFacts, ModelCall

MAX_TREE_NODES = 2_000
"""How many calls a tree lists."""


class ExecutionTreeNode(Value):
    """One call, at whatever depth."""

    id: str
    """The id of the call."""
    parent_id: str | None
    """The call whose child made this one; None: the turn's own conversation."""
    name: str
    """The name of the tool."""
    title: str | None = None
    """Of a call that made a child: what the child is about."""
    args_preview: str | None = None
    """Redacted JSON, at most 500 characters."""
    result_preview: str | None = None
    """At most 500 characters of what it returned, or of what went wrong."""
    is_error: bool | None = None
    """None: it is under way."""
    duration_ms: int
    """Of one that is under way, up to the newest fact of its turn."""
    started_at: float | None = None
    """When it was taken up, in Unix seconds."""
    cost: str | None = None
    """Of a call that made a child: what the requests to models inside it cost so far, in USD. None: no price of any is
    known."""


class ExecutionTreeSnapshot(Value):
    """The calls of a turn, in the order in which they started: a parent stands before what is inside it."""

    version: Literal[1] = 1
    nodes: tuple[ExecutionTreeNode, ...] = ()
    omitted: int = 0
    """Calls that are not listed, because the list was full when they started."""


class ThreadMessage(Value):
    """One message of a thread as a client shows it after a reload."""

    role: Literal["user", "assistant"]
    content: str
    turn_id: str
    event_seq: int
    """The fact it stands for: the message that was admitted, or how the turn ended."""
    status: Literal["running", "completed", "incomplete", "error", "cancelled"] | None = None
    """Of an answer: how its turn stands. The text of a turn that did not complete is what there was of it."""
    execution_tree: ExecutionTreeSnapshot | None = None
    """Of an answer: what was done for it; None when no tool was called."""


@dataclass(slots=True)
class _Node:
    id: str
    parent_id: str | None
    name: str
    at: int
    title: str | None = None
    args_preview: str | None = None
    result_preview: str | None = None
    is_error: bool | None = None
    duration_ms: float | None = None


class _Tree:
    """The fold. A call is listed when it is taken up; one that was refused before that, when it is refused."""

    def __init__(self, secrets: RunSecrets, most: int = MAX_TREE_NODES) -> None:
        self._secrets = secrets
        self._most = most
        self._nodes: dict[str, _Node] = {}
        self._omitted: set[str] = set()
        self._now = 0
        self._over = False
        self._said = CallFacts()
        self._inside: list[ModelCall] = []
        """Requests to models inside calls."""

    def take(self, fact: Fact) -> None:
        self._now = max(self._now, fact.at)
        event = fact.event
        request = self._said.take(fact)
        if request is not None and request.parent_call_id is not None:
            self._inside.append(request)
        if isinstance(event, Terminal | TurnRetried):
            self._over = isinstance(event, Terminal)
        if fact.call_id is None or not is_conversations(fact):
            return
        match event:
            case ToolStarted():
                node = self._node(fact, event.tool_name)
                if node is not None and event.safe_args is not None:
                    node.args_preview = self._arguments(event)
                    title = event.safe_args.get("title")
                    if makes_a_child(event.tool_name) and isinstance(title, str):
                        node.title = self._cut(title)
            case ToolArgs() if event.changed_by != "model" and event.safe_args is not None:
                node = self._nodes.get(fact.call_id)
                if node is not None:  # what runs is shown, not what was asked for
                    node.args_preview = self._arguments(event)
            case SubagentStarted():
                # A call that makes several children has as many titles, and none of them is its own.
                node = self._nodes.get(fact.call_id)
                if node is not None and node.title is None and event.level_id == fact.call_id:
                    node.title = self._cut(event.title)
            case ToolResult() | ToolFailed():
                end = ended(event)
                node = self._node(fact, end.name)
                if node is not None:
                    node.result_preview = self._cut(end.words)
                    node.is_error = end.is_error
                    node.duration_ms = end.duration_ms

    def _node(self, fact: Fact, name: str) -> _Node | None:
        call_id = fact.call_id or ""
        known = self._nodes.get(call_id)
        if known is not None:
            return known
        if len(self._nodes) >= self._most:
            self._omitted.add(call_id)
            return None
        # What is inside a call that is not listed began after it, when the list was full already.
        parent = fact.parent_call_id if fact.parent_call_id in self._nodes else None
        node = self._nodes[call_id] = _Node(call_id, parent, name, fact.at)
        return node

    def _arguments(self, event: ToolStarted | ToolArgs) -> str:
        text = json.dumps(event.safe_args, ensure_ascii=False, default=str)
        return self._secrets.hide_keys(text[:ROOM])[:PREVIEW_CHARS]

    def _cut(self, text: str) -> str:
        return self._secrets.hide(text[:ROOM])[:PREVIEW_CHARS]

    def snapshot(self) -> ExecutionTreeSnapshot:
        costs = self._costs()
        nodes = tuple(self._listed(node, costs.get(node.id)) for node in self._nodes.values())
        return ExecutionTreeSnapshot(nodes=nodes, omitted=len(self._omitted))

    def _costs(self) -> dict[str, Decimal]:
        """By the call, what the requests inside it cost, at whatever depth."""
        found: dict[str, Decimal] = {}
        for request in self._inside:
            if request.cost is not None and request.parent_call_id is not None:
                found[request.parent_call_id] = found.get(request.parent_call_id, Decimal(0)) + request.cost
        for node in reversed(self._nodes.values()):  # what is inside comes after what it is in
            if node.parent_id is not None and node.id in found:
                found[node.parent_id] = found.get(node.parent_id, Decimal(0)) + found[node.id]
        return found

    def _listed(self, node: _Node, cost: Decimal | None) -> ExecutionTreeNode:
        under_way = node.is_error is None
        took = (self._now - node.at) / 1000 if node.duration_ms is None else node.duration_ms
        return ExecutionTreeNode(
            id=node.id,
            parent_id=node.parent_id,
            name=node.name,
            title=node.title,
            args_preview=node.args_preview,
            result_preview=node.result_preview,
            # Whatever ended the turn ended the call: nobody is waiting for it any more.
            is_error=True if under_way and self._over else node.is_error,
            duration_ms=max(0, round(took)),
            started_at=node.at / 1e6,
            cost=None if cost is None else decimal_text(cost),
        )


def makes_a_child(tool_name: str) -> bool:
    """Whether a call of this tool carries the title of the child it makes."""
    return tool_name.rpartition("/")[2] == "run_subtask"


def execution_tree(
    facts: Iterable[StoredFact],
    turn_id: str | None = None,
    secrets: RunSecrets | None = None,
    *,
    most: int = MAX_TREE_NODES,
) -> ExecutionTreeSnapshot:
    """The tree of one turn. `turn_id` picks its facts out of more; `secrets` is what is known to be one beforehand.

    At most `most` calls are listed, the first ones; `omitted` counts the rest.
    """
    facts = [entry for entry in once(facts) if turn_id is None or entry.fact.turn_id == turn_id]
    secrets = secrets if secrets is not None else RunSecrets()
    secrets.learn(facts)
    tree = _Tree(secrets, most)
    for entry in facts:
        tree.take(entry.fact)
    return tree.snapshot()


def thread_messages(facts: Iterable[StoredFact], secrets: RunSecrets | None = None) -> list[ThreadMessage]:
    """The messages of a thread, oldest first; each answer with the tree of its turn, however the turn ended."""
    facts = list(once(facts))
    secrets = secrets if secrets is not None else RunSecrets()
    secrets.learn(facts)
    turns: dict[str, _Answer] = {}
    over: dict[str, _Answer] = {}
    messages: list[ThreadMessage] = []
    for seq, fact in ((entry.seq, entry.fact) for entry in facts):
        if fact.turn_id is None:
            continue
        answer = turns.setdefault(fact.turn_id, _Answer(_Tree(secrets)))
        answer.tree.take(fact)
        match fact.event:
            case MessageAdmitted(item=item) | TurnInterjected(item=item):
                text = secrets.hide(item.text)
                messages.append(ThreadMessage(role="user", content=text, turn_id=fact.turn_id, event_seq=seq))
            case AssistantRecorded(item=item) if is_roots(fact):
                answer.text, answer.seq = item.text or answer.text, seq
            case Terminal() as end:
                answer.seq = seq
                over[fact.turn_id] = answer
                messages.append(_answered(fact.turn_id, turns.pop(fact.turn_id), TURN_STATUS[end.status], secrets))
            case TurnRetried():  # one answer a turn: what it ends with now takes the place of the failure
                messages = [each for each in messages if (each.turn_id, each.role) != (fact.turn_id, "assistant")]
                turns[fact.turn_id] = over.pop(fact.turn_id, answer)
    messages += (_answered(turn, answer, "running", secrets) for turn, answer in turns.items() if answer.seq)
    return sorted(messages, key=lambda message: message.event_seq)


@dataclass(slots=True)
class _Answer:
    tree: _Tree
    text: str = ""
    seq: int = 0


def _answered(turn_id: str, answer: _Answer, status: str, secrets: RunSecrets) -> ThreadMessage:
    tree = answer.tree.snapshot()
    return ThreadMessage(
        role="assistant",
        content=secrets.hide(answer.text),
        turn_id=turn_id,
        event_seq=answer.seq,
        status=status,
        execution_tree=tree if tree.nodes else None,
    )
