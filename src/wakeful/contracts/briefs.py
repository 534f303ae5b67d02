"""A brief: what an agent tells the people it works for, apart from its reasoning and from the traces of its tools."""

from typing import Literal, TypeAlias

BriefKind: TypeAlias = Literal["ack", "result", "failure", "progress"]
"""ack: work goes on without anybody on the line. result: what a turn came to. failure: why one failed. progress: what
the agent itself wanted to be known before that."""
BriefVisibility: TypeAlias = Literal["action_required", "work_done", "turn_result"]
"""action_required: somebody is waited for. work_done: a work item was completed with a report. turn_result: any
other."""
