"""Levels below the root, as facts begin and end them: children that calls make, and the planner."""

from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import (
    PlanningCompleted,
    PlanningFailed,
    PlanningStarted,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
)
from wakeful.decisions.delegation import TASK_KEY, child_config
from wakeful.decisions.level_conversation import LevelConversation
from wakeful.decisions.levels import ChildEnd, ChildRole, Level, PlannerRole, Scratchpad, as_child
from wakeful.decisions.planner import planner_config
from wakeful.decisions.state import TurnState


def child_started(state: TurnState, level: Level, fact: Fact, event: SubagentStarted) -> None:
    call = state.tree.calls[fact.call_id or ""]
    if not call.children:
        state.tree.in_flight -= 1  # from here on others work for it
    call.children.append(ChildEnd(event, fact.at))
    state.ledger.subtasks += 1
    assert level.config is not None
    own = state.configs.get(event.config_ref.digest) if event.config_ref is not None else None
    child = Level(
        id=event.level_id,
        parent=level,
        depth=event.depth,
        role=ChildRole(call, event),
        config=own or child_config(level.config, event, state.limits),
        conversation=LevelConversation([event.task]),
        phase="ready",
        scratchpad=Scratchpad(dict(level.scratchpad.at_round)),
    )
    opened(state, child)


def child_ended(state: TurnState, level: Level, fact: Fact, event: SubagentCompleted | SubagentFailed) -> None:
    child = as_child(level)
    assert child is not None and level.id is not None
    close(state, level)
    call = child.call
    job = next(job for job in call.children if job.started.level_id == level.id)
    job.end, job.ended_at = event, fact.at
    job.noted = level.scratchpad.written
    if isinstance(event, SubagentCompleted):
        noted = event.output if event.output is not None else level.answer.final_text
        if event.output_ref is not None:
            noted = {"beginning": level.answer.final_text, "whole": event.output_ref.digest}
        job.noted[TASK_KEY + level.id] = noted


def opened(state: TurnState, level: Level) -> None:
    assert level.id is not None
    state.tree.opened += 1
    level.rank = state.tree.opened
    state.tree.levels[level.id] = state.tree.able[level.id] = level


def close(state: TurnState, level: Level) -> None:
    assert level.id is not None
    level.phase = "ended"
    for call in level.round.batch:
        state.tree.calls.pop(call.call_id, None)
    state.tree.levels.pop(level.id, None)
    state.tree.able.pop(level.id, None)
    state.tree.away.pop(level.id, None)
    state.tree.to_call_off.pop(level.id, None)


def planning_started(state: TurnState, event: PlanningStarted) -> None:
    assert state.config is not None
    state.phase = "apart"
    state.planning.is_over = True
    planner = Level(
        id=event.level_id,
        role=PlannerRole(),
        parent=state,
        config=planner_config(state.config),
        conversation=LevelConversation(
            list(state.conversation.items),
            heard=list(state.conversation.heard),
            advised=dict(state.conversation.advised),
            references=dict(state.conversation.references),
            conserved=state.conversation.conserved,
        ),
        phase="ready",
        scratchpad=Scratchpad(dict(state.scratchpad.visible)),
    )
    opened(state, planner)


def planning_ended(state: TurnState, event: PlanningCompleted | PlanningFailed) -> None:
    planner = state.tree.levels.get(event.level_id)
    if planner is not None:
        close(state, planner)
    if isinstance(event, PlanningCompleted):
        state.planning.plan = event.plan
    if state.phase == "apart":
        state.phase = "ready"
    state.tree.touched(state)
