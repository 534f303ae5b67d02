"""What the runtime answers itself: children begin and end here, and notes of the turn are read and written.

A call of one of these tools passed the gate like any other. Its facts are written with its intent, in one commit: a
child is there or it is not, and a note is written or it is not, whenever the process dies.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact, event_id
from wakeful.contracts.events import (
    AnswerRejected,
    LimitChanged,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
)
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.decisions.delegation import (
    MAX_INLINE_OUTPUT,
    NO_JOB,
    TASK_KEY,
    Job,
    Refusal,
    child_of,
    jobs_of,
    outcome_text,
    refused,
)
from wakeful.decisions.levels import Call, ChildEnd, Level, as_child
from wakeful.decisions.runtime_answers import DELEGATING
from wakeful.decisions.step import EndLevel
from wakeful.decisions.turn import stopped_level
from wakeful.decisions.workflows.children import agent_child
from wakeful.decisions.workflows.graph_planner import (
    MAX_TOLD,
    BuildFailure,
    GraphCorrection,
    judged,
    planner_instructions,
)
from wakeful.engine.immediate_answers import answer_at_once, no_result, refuse
from wakeful.engine.turn_work import OtherAgent, TurnWork
from wakeful.engine.whole_texts import reference_of
from wakeful.gate.argument_validation import schema_problem
from wakeful.gate.call_at_gate import CallAtGate, CallRecord
from wakeful.gate.call_facts import idempotency_key
from wakeful.gate.result_shape import at_once, makes_short_text, shaped
from wakeful.tools.workflows import BUILD_WORKFLOW

MAX_CHILD_BYTES = 60_000
"""What the fact that makes a child may have: the log takes no more than a little above that in one event."""


class RuntimeCalls:
    """Carries out what calls ask of the runtime itself."""

    def __init__(self, work: TurnWork, post: Callable[[list[Fact]], None]) -> None:
        self._work = work
        self._post = post
        self._ending: set[str] = set()
        """Levels whose long result is on its way to a blob."""
        self._verdicts: dict[str, str] = {}
        """What let the calls through whose children are at work."""

    # --- calls --------------------------------------------------------------------------------------------------------

    def begin(self, call: Call, dispatch: CallAtGate) -> list[Fact]:
        """The facts that follow the call's intent at once."""
        answered = answer_at_once(self._work, call, dispatch)
        if answered is not None:
            return answered
        name = dispatch.declaration.name
        if name == BUILD_WORKFLOW.name:
            return self._plan_workflow(call, dispatch)
        other = self._work.code.others.get(name)
        if other is not None:
            return self._agent(call, dispatch, other)
        return self._children(call, dispatch)

    def _plan_workflow(self, call: Call, dispatch: CallAtGate) -> list[Fact]:
        """A child draws the graph; it has no tools and sees the objective alone."""
        work, level = self._work, call.level
        assert level.config is not None and work.code.desk is not None
        state = work.state
        refusal = refused([NO_JOB], level, level.config, state.limits, state.ledger.subtasks)
        if refusal is not None:
            return [refuse(self._work, call, dispatch, refusal)]
        objective = dispatch.arguments["objective"]
        told = planner_instructions(work.code.desk.types.values(), objective)
        job = Job("workflow", objective, (), None, told)
        return self._begun(call, dispatch, [child_of(dispatch.declaration.name, call, level, job, 0, True)])

    def _built(self, level: Level, step: EndLevel, call: Call, parent: Level) -> list[Fact]:
        """The child's draft: back to it with what is wrong, or kept, or given up."""
        work = self._work
        assert work.code.desk is not None
        judgement = judged(work.texts.of(level), work.code.desk.types, level.answer.rejections)
        if isinstance(judgement, GraphCorrection):
            item = UserItem(parts=(Text(judgement.text),), origin="runtime")
            errors = tuple(str(problem) for problem in judgement.problems[:10])
            return [work.fact(AnswerRejected(item=item, errors=errors), level.step, None, level)]
        ended, record = self._ended(level, step), self._record(call)
        if isinstance(judgement, BuildFailure):
            problems = [problem.model_dump(mode="json") for problem in judgement.problems[:MAX_TOLD]]
            words = "no valid workflow came of it, and nothing was saved"
            failure = no_result(record, Refusal("invalid_workflow", words, {"problems": problems}), work.now())
            return [ended, work.fact(failure, call.step, call.call_id, parent)]
        self._ending.add(step.level)
        work.tasks.spawn(self._keep_workflow(step.level, judgement.graph, ended, record, call, parent))
        return []

    async def _keep_workflow(
        self, level_id: str, graph: WorkflowGraph, ended: Fact, record: CallRecord, call: Call, parent: Level
    ) -> None:
        """Saved under the call's own key: after a crash the same call finds what it saved."""
        work = self._work
        assert work.code.desk is not None
        saved = await work.code.desk.keep(graph, idempotency_key(work.place.row.turn_id, call.call_id))
        words = json.dumps(saved.reference.model_dump(mode="json"), ensure_ascii=False)
        result = at_once(record, words, work.now(), work.gate.keys())
        if level_id in work.state.tree.levels:
            self._post([ended, work.fact(result, call.step, call.call_id, parent)])
        self._ending.discard(level_id)

    def _agent(self, call: Call, dispatch: CallAtGate, other: OtherAgent) -> list[Fact]:
        """Another agent is the child, with its own configuration, where the budget has room for one."""
        work, level = self._work, call.level
        assert level.config is not None
        state = work.state
        refusal = refused([NO_JOB], level, level.config, state.limits, state.ledger.subtasks)
        if refusal is not None:
            return [refuse(self._work, call, dispatch, refusal)]
        state.configs = {**state.configs, other.config_ref.digest: other.config}
        started = agent_child(call, dispatch.arguments, other.config_ref, other.output_schema)
        return self._begun(call, dispatch, [started])

    def _begun(self, call: Call, dispatch: CallAtGate, children: list[SubagentStarted]) -> list[Fact]:
        """All the children of a call, or none: what a child is asked stands in the fact that makes it."""
        for started in children:
            size = len(started.model_dump_json().encode())
            if size > MAX_CHILD_BYTES:
                words = (
                    f"what the child would be given (task, schema, prompt) has {size} bytes; the limit is "
                    f"{MAX_CHILD_BYTES}: pass less, or a file. Nothing was started."
                )
                details = {"index": started.index, "bytes": size}
                error = "invalid_input" if dispatch.declaration.name in DELEGATING else "input_too_long"
                return [refuse(self._work, call, dispatch, Refusal(error, words, details))]
        return [self._work.fact(started, call.step, call.call_id, call.level) for started in children]

    def _children(self, call: Call, dispatch: CallAtGate) -> list[Fact]:
        work, level, name = self._work, call.level, dispatch.declaration.name
        assert level.config is not None
        limits, started = work.state.limits, work.state.ledger.subtasks
        jobs = jobs_of(name, dispatch.arguments, level.config)
        if not isinstance(jobs, Refusal):
            for job in jobs:
                problem = schema_problem(job.output_schema) if job.output_schema is not None else None
                if problem is not None:
                    jobs = Refusal("invalid_input", f"output_schema: {problem}. Nothing was started.", {})
                    break
        if isinstance(jobs, Refusal):
            return [refuse(self._work, call, dispatch, jobs)]
        refusal = refused(jobs, level, level.config, limits, started)
        if refusal is not None:
            facts = [refuse(self._work, call, dispatch, refusal)]
            if refusal.error == "budget_exceeded":
                limit = LimitChanged(limit_name="subtasks", limit=limits.subtasks or 0, observed=started + len(jobs))
                facts.append(work.fact(limit, call.step, None, level))
            return facts
        alone = name != "spawn_parallel"
        return self._begun(
            call, dispatch, [child_of(name, call, level, job, index, alone) for index, job in enumerate(jobs)]
        )

    # --- levels -------------------------------------------------------------------------------------------------------

    def end(self, step: EndLevel) -> list[Fact]:
        """The end of a level; with the last child of a call, the call's own end in the same commit."""
        level = self._work.state.tree.levels[step.level]
        child, parent = as_child(level), level.parent
        assert child is not None and parent is not None
        call = child.call
        if step.level in self._ending:
            return []
        if call.part.name == BUILD_WORKFLOW.name and not step.error:
            stop = self._work.state.stop
            if self._work.code.desk is not None or stop is None:
                return self._built(level, step, call, parent)
            step = stopped_level(level, stop)  # ended at rest: there is no code to judge the draft, and none to keep it
        ended = self._ended(level, step)
        assert isinstance(ended.event, SubagentCompleted | SubagentFailed)
        if any(job.end is None and job.started.level_id != level.id for job in call.children):
            return [ended]
        jobs = [
            replace(job, end=ended.event, ended_at=ended.at) if job.started.level_id == level.id else job
            for job in call.children
        ]
        apart = [job.end.output_ref for job in jobs if isinstance(job.end, SubagentCompleted)]
        if not self._work.texts.has(*(ref for ref in apart if ref is not None)):
            return []  # what the others came to is on its way
        words, is_error = outcome_text(call.part.name, jobs, [self._long_text(call, level, job) for job in jobs])
        record = self._record(call)
        if is_error:
            refusal = Refusal(step.error or "subtask_failed", step.message, dict(step.details))
            failure = no_result(record, refusal, self._work.now(), words)
            if failure.status == "cancelled":
                failure = failure.model_copy(update=self._why_cancelled(call))
            return [ended, self._work.fact(failure, call.step, call.call_id, parent)]
        gate = self._work.gate
        if makes_short_text(words, gate.result_bytes()):
            result = at_once(record, words, self._work.now(), gate.keys())
            return [ended, self._work.fact(result, call.step, call.call_id, parent)]
        self._ending.add(step.level)
        self._work.tasks.spawn(self._end_later(step.level, ended, record, words, call, parent))
        return []

    def _why_cancelled(self, call: Call) -> dict[str, Any]:
        """Called off by a failure beside it, or stopped with the turn."""
        if call.called_off:
            return {"error_category": "sibling_canceled", "abort_reason": "sibling_failed"}
        stop = self._work.state.stop
        return {"abort_reason": stop.abort} if stop is not None else {}

    async def _end_later(
        self, level_id: str, ended: Fact, record: CallRecord, words: str, call: Call, parent: Level
    ) -> None:
        """A long result goes to a blob first; what the model is shown of it is cut like any other."""
        work = self._work
        gate = work.gate
        events = await shaped(record, words, now=work.now, keep=gate.keep, keys=gate.keys(), most=gate.result_bytes())
        if level_id in work.state.tree.levels:
            self._post([ended, *(work.fact(event, call.step, call.call_id, parent) for event in events)])
        self._ending.discard(level_id)

    def _ended(self, level: Level, step: EndLevel) -> Fact:
        assert level.id is not None
        usage = level.model_usage.tokens if level.model_usage.is_reported else None
        event: SubagentCompleted | SubagentFailed
        if step.error:
            event = SubagentFailed(
                level_id=level.id,
                error=step.error,
                message=step.message[:2000],
                details=dict(step.details),
                steps=level.step,
                token_usage=usage,
            )
        else:
            child = as_child(level)
            has_finished = child is not None and child.has_finished
            apart = reference_of(level) if not has_finished else None
            output = child.payload if child is not None and child.has_finished else level.answer.final_text
            too_long = apart is not None or (isinstance(output, str) and len(output) > MAX_INLINE_OUTPUT)
            event = SubagentCompleted(
                level_id=level.id,
                output=None if too_long else output,
                output_ref=apart,
                steps=level.step,
                token_usage=usage,
            )
        return self._work.fact(event, level.step or None, None, level)

    def _long_text(self, call: Call, level: Level, job: ChildEnd) -> str | None:
        """The text of a child that is too long to stand in its end: it is in its conversation, and in the notes."""
        if isinstance(job.end, SubagentCompleted) and job.end.output_ref is not None:
            return self._work.texts.text(job.end.output_ref)
        if job.started.level_id == level.id:
            child = as_child(level)
            text: Any = level.answer.final_text if child is None or not child.has_finished else None
        else:
            text = call.noted.get(TASK_KEY + job.started.level_id)
        return text if isinstance(text, str) and len(text) > MAX_INLINE_OUTPUT else None

    def began(self, call_id: str, permission_at: int | None, first_seq: int) -> None:
        """A call has its children, and its first fact this number: its end will name the verdict."""
        if permission_at is not None:
            self._verdicts[call_id] = event_id(self._work.place.claim.agent_id, first_seq + permission_at)

    def _record(self, call: Call) -> CallRecord:
        record = CallRecord(call, (call.started_at or self._work.clock.now()) / 1_000_000)
        record.execution_ms = round(max(0.0, self._work.now() - record.taken_up_at) * 1000, 3)
        verdict = self._verdicts.pop(call.call_id, None)
        record.permission_ref = verdict or self._work.place.known.refs_of(call.call_id).permission
        if call.pending is not None:
            record.approval_id, record.approval_status = call.pending.action_id, "approved"
        return record
