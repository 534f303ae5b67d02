"""Errors over HTTP: one shape for all of them, whoever raised them.

    {"error": {"code": "agent_stopped", "message": "...", "hint": "wakeful agent resume ops", "retryable": false}}

`code` is for programs and stays; `message` says what happened, `hint` what to do. `retryable`: the same request may
succeed later.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from wakeful.contracts import errors as known
from wakeful.contracts.errors import WakefulError
from wakeful.service.operations.answers import SHUTTING_DOWN


class ErrorWords(BaseModel):
    """What went wrong, and what to do about it."""

    code: str = Field(examples=["agent_stopped"])
    message: str = Field(examples=["agent 'ops' is stopped"])
    hint: str = Field("", examples=["wakeful agent resume ops"])
    retryable: bool = False
    details: dict[str, Any] | None = None


class ErrorAnswer(BaseModel):
    """The body of every answer that is an error."""

    error: ErrorWords


class HttpProblem(NamedTuple):
    """An error, ready to be sent."""

    status: int
    words: ErrorWords

    @property
    def body(self) -> bytes:
        try:
            return ErrorAnswer(error=self.words).model_dump_json(exclude_none=True).encode()
        except ValueError:  # names of files need not be text
            told = json.dumps({"error": self.words.model_dump(exclude_none=True)}, default=str)
            return told.encode()


STATUSES: Mapping[type[Exception], int] = {
    known.ArtifactExpired: 410,
    known.CursorGone: 410,
    known.AgentNotFound: 404,
    known.TurnDeleted: 410,
    known.TurnNotFound: 404,
    known.ThreadNotFound: 404,
    known.ApprovalNotFound: 404,
    known.MessageNotFound: 404,
    known.ArtifactNotFound: 404,
    known.WorkflowNotFound: 404,
    known.RequestNotFound: 404,
    known.CallNotFound: 404,
    known.TaskNotFound: 404,
    known.TimerNotFound: 404,
    known.TriggerNotFound: 404,
    known.ChannelNotFound: 404,
    known.TemplateNotFound: 404,
    known.AgentNameTaken: 409,
    known.DefinedInCode: 409,
    known.AgentStopped: 409,
    known.AlreadyDecided: 409,
    known.RetryRefused: 409,
    known.TurnOver: 409,
    known.KeyReused: 409,
    known.RequestUndecided: 409,
    known.WorkflowNameTaken: 409,
    known.NotEntitled: 403,
    known.NotBuiltYet: 501,
    known.StoreFull: 507,
    known.AgentBusy: 409,
    known.StoreProblem: 503,
    known.EventRefused: 422,
    known.ForTheCaller: 422,
    known.ForThePerson: 409,
}
"""The first class of an error's own line of classes that is here says the status."""
BY_CODE: Mapping[str, int] = {
    "invalid_cursor": 400,
    "duplicate_key": 400,
    "task_run_not_found": 404,
    "task_run_already_started": 409,
    "runtime_bundle_agent_exists": 409,
    SHUTTING_DOWN: 503,
}
"""Statuses that a code alone decides."""
RETRYABLE = (known.AgentBusy, known.StoreLocked, known.StoreFull, known.StoreReadOnly)
UNDER_WAY = "request_under_way"
LATER = frozenset({UNDER_WAY, SHUTTING_DOWN})
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def problem_of(error: Exception) -> HttpProblem:
    """Any error as an answer. What is no error of ours says nothing about itself: its words are in the log."""
    if not isinstance(error, WakefulError):
        return problem(500, "internal_error", "the runtime failed at this request", "wakeful daemon logs")
    status = BY_CODE.get(getattr(error, "code", "")) or next(
        (STATUSES[each] for each in type(error).__mro__ if each in STATUSES), 500
    )
    code = getattr(error, "code", None) or _WORDS.sub("_", type(error).__name__).lower()
    message = error.message.removeprefix(f"{code}: ")  # it stands beside it
    found = problem(status, str(code), message, error.hint, retryable=is_retryable(error))
    if isinstance(error, known.AlreadyDecided) and error.ended_with is not None:
        found.words.details = dict(error.ended_with)
    return found


def is_retryable(error: WakefulError) -> bool:
    """May the same request succeed later?"""
    return isinstance(error, RETRYABLE) or getattr(error, "code", None) in LATER


def problem(status: int, code: str, message: str, hint: str = "", *, retryable: bool = False) -> HttpProblem:
    return HttpProblem(status, ErrorWords(code=code, message=message, hint=hint, retryable=retryable))
