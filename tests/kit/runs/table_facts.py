"""A story that fills every declared table and changes rows of each in every way its rules know.

A new table adds the facts it is about here: a test compares the events of the story with the events that have rules.
"""

from kit.runs.action_facts import about, asked, decided, rule_added, rule_revoked
from kit.runs.store_facts import AGENT, NOON, claimed, resolved, started, tool_failed, tool_started
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    ActionSettled,
    ActionStaged,
    FilesTainted,
    RuntimeToolRequested,
    RuntimeToolResolved,
)
from wakeful.ports import Claim, Store

OTHER, OTHER_TURN = "agent_2", "turn_9"


def _staged(event: ActionStaged | ActionSettled) -> Fact:
    return Fact(event, NOON, action_id=event.action_id)


_CLIENT_DONE = RuntimeToolResolved(request_id="rt_1", tool_name="ui", status="runtime_tool_completed", success=True)

OWNED: list[list[Fact]] = [
    [started(), asked(), asked("appr_2", at=NOON + 1), asked("ask_3", kind="question")],
    [tool_started(call="c1"), tool_started(call="c2"), tool_started(call="c3")],
    [tool_failed(call="c1"), tool_failed(call="c2")],
    [tool_failed(call="c3", effects="none"), tool_started(call="c4", b=9), tool_failed(call="c4")],
    [
        about(RuntimeToolRequested(request_id="rt_1", tool_name="ui", args_sha256="1", timeout_at=NOON + 9), "rt_1"),
        about(RuntimeToolRequested(request_id="rt_2", tool_name="ui", args_sha256="1", timeout_at=NOON + 9), "rt_2"),
    ],
    [about(FilesTainted(workspace="/w", cause="page", since=NOON), "c1")],
    [
        about(FilesTainted(workspace="/w", cause="page", files={"a": "sha256:a", "d/": ""}, settles=NOON), "c1"),
        about(FilesTainted(workspace="/w", cause="page", since=NOON + 1), "c1", at=NOON + 1),
    ],
]
"""What the owner of the first turn appends, one after the other."""

OUTSIDE: list[list[Fact]] = [
    [rule_added(), decided("appr_2", "rejected")],
    [rule_added("rule_2", "other"), rule_added("rule_3", at=NOON + 1)],
    [rule_revoked()],
    [resolved(call="c2")],
    [about(_CLIENT_DONE, "rt_1")],
    [_staged(ActionStaged(action_id="pa_1", action_type="pending_action", name="transfer", expires_at=NOON + 5))],
    [_staged(ActionSettled(action_id="pa_1", action_type="pending_action", status="accepted", settled_by="ada"))],
]
"""What others append."""


async def tell(store: Store) -> Claim:
    """The whole story, and some of it for a second agent, whose claim is returned."""
    claim = await claimed(store)
    second = await claimed(store, OTHER_TURN, OTHER)
    for facts in OWNED:
        await store.append(claim, facts)
    for facts in OUTSIDE:
        await store.admit(AGENT, facts)
    await store.append(second, [started(OTHER_TURN), asked("appr_9", turn=OTHER_TURN), tool_started(OTHER_TURN)])
    await store.append(second, [tool_failed(OTHER_TURN), about(tainted(), "c1", turn=OTHER_TURN)])
    await store.admit(OTHER, [rule_revoked()])  # the rule is another agent's
    return second


def tainted() -> FilesTainted:
    return FilesTainted(workspace="/w", cause="page", files={"a": "sha256:a"})


def told() -> set[type]:
    """The events of the story."""
    return {type(fact.event) for facts in (*OWNED, *OUTSIDE) for fact in facts}
