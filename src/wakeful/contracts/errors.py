"""One tree of errors, grouped by who must act.

`wakeful.errors` draws the tree and exports what a program may catch.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from wakeful.contracts.models import FailureKind, ProviderLimit, Stage, TokenUsage, TransportDiagnostics
    from wakeful.contracts.tools import ToolError
    from wakeful.contracts.workflows import GraphProblem


class WakefulError(Exception):
    """An error of wakeful. `message` says what happened, with the value; `hint` says what to do next."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class ForTheModel(WakefulError):
    """Caught by the loop: one call's result, nothing more."""


class ToolRetry(ForTheModel):
    """Raised by a tool: the model should try differently, and this is why."""


class ToolReported(ForTheModel):
    """Raised by a tool whose host reports failures instead of raising them: the call failed, and this is the error."""

    def __init__(self, error: "ToolError") -> None:
        super().__init__(error.message, error.recovery_hint or "")
        self.error = error


class ToolAsks(ForTheModel):
    """A tool says that a person has to decide first. It has done nothing; once approved, it is called again."""


class OutcomeUnknown(ForTheModel):
    """Raised by a tool: the effect may have happened and nobody can say."""


class ForThePerson(WakefulError):
    """A person has to supply or decide something; nothing is lost meanwhile."""

    exit_code = 3


class NotCompleted(ForThePerson):
    """`result.output` was read from a run that did not complete."""

    exit_code = 1


class AgentMissing(ForThePerson):
    """The store names an agent and no code for it was supplied."""


class ToolMissing(ForThePerson):
    """The turn cannot go on without a tool that was not supplied."""


class WorkspaceMissing(ForThePerson):
    """The folder that an agent works in is not there. It is tried again until the folder is back."""

    folder: str = ""


class ForTheCaller(WakefulError):
    """The request has to be changed."""

    exit_code = 2
    field: "tuple[str | int, ...]" = ()
    """Where in a written definition it is: names of fields, and places in lists. Empty: nowhere in particular."""

    def within(self, *field: "str | int") -> Self:
        """The same problem, in a part of what was given."""
        self.field = (*field, *self.field)
        return self


@contextmanager
def inside(*field: "str | int") -> Iterator[None]:
    """What goes wrong in here is about this field."""
    try:
        yield
    except ForTheCaller as problem:
        problem.within(*field)
        raise


class NotBuiltYet(ForTheCaller):
    """A parameter whose promise nothing keeps yet is refused, never ignored."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(f"{what} is not available in this version of wakeful", hint)


class ContextWindowUnknown(ForTheCaller):
    """A limit on the context was set for a model whose window nobody knows."""

    code = "context_window_unknown"


class InvalidValue(ForTheCaller):
    """A value from outside does not keep its contract; `code` says which contract, `path` where."""

    def __init__(self, code: str, path: str, reason: str, hint: str = "") -> None:
        super().__init__(f"{code}: {path}: {reason}" if path else f"{code}: {reason}", hint)
        self.code = code
        self.path = path
        self.reason = reason


class KeyReused(ForTheCaller):
    """The same key with another prompt or another agent, or with another request."""


class RequestUndecided(ForTheCaller):
    """A request with an idempotency key cannot be answered: `code` says whether the first one is still under way
    (`request_under_way`), was cut off (`outcome_unknown`), or had an answer that is not kept (`answer_not_kept`)."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


class CursorGone(ForTheCaller):
    """A cursor points before the oldest row that is kept, or into another store."""


class InvalidRequest(ForTheCaller):
    """An option of this run could have no effect as it stands."""


class TaskNotFound(InvalidRequest):
    """No task has this id."""


class TimerNotFound(InvalidRequest):
    """No timer has this id or name."""


class TriggerNotFound(InvalidRequest):
    """No trigger has this id or name."""


class ChannelNotFound(InvalidRequest):
    """No phone was added under this name."""


class TemplateNotFound(InvalidRequest):
    """No template is at this place."""


class AgentNameTaken(InvalidRequest):
    """Another agent has that name."""


class DefinedInCode(InvalidRequest):
    """The agent belongs to a file or a program: it is changed there, and nowhere else."""


class DepsMissing(ForTheCaller):
    """The agent's tools need deps."""


class WrongDeps(ForTheCaller):
    """The deps of this run are not what the agent's `deps_type` says."""


class AgentNotFound(ForTheCaller):
    """No agent of the runtime has that name."""


class AgentStopped(ForTheCaller):
    """The agent was stopped: it takes nothing from outside until somebody lets it run again."""


class MessageNotFound(ForTheCaller):
    """No message has this id, or it expired."""


class TurnNotFound(ForTheCaller):
    """No such turn in this store."""


class TurnDeleted(TurnNotFound):
    """The turn was there, and its thread was deleted: what was said in it cannot be shown."""


class ThreadNotFound(ForTheCaller):
    """No such thread in this store."""


class RetryRefused(ForTheCaller):
    """The turn cannot be tried again. `in_its_place`: the message that can be sent instead."""

    def __init__(self, message: str, hint: str = "", *, in_its_place: str = "") -> None:
        super().__init__(message, hint)
        self.in_its_place = in_its_place


class TurnOver(ForTheCaller):
    """The turn has ended: what was asked of it cannot be done any more."""


class ApprovalNotFound(ForTheCaller):
    """No approval, question or rule of that name is there."""


class ArtifactNotFound(ForTheCaller):
    """No artifact of that id is there."""


class ArtifactExpired(ArtifactNotFound):
    """The artifact was there, and retention has removed its bytes."""


class WorkflowNotFound(ForTheCaller):
    """No workflow, or no revision, of that name or id is there."""

    code = "workflow_not_found"


class WorkflowNameTaken(ForTheCaller):
    """Another workflow has that name."""


class InvalidWorkflow(ForTheCaller):
    """The graph does not hold together, and was neither saved nor run; `problems` says each thing that is wrong."""

    def __init__(self, message: str, problems: "tuple[GraphProblem, ...]") -> None:
        super().__init__(message, "\n".join(str(problem) for problem in problems))
        self.problems = problems


class RequestNotFound(ForTheCaller):
    """No client was asked for anything under that name."""


class NotEntitled(ForTheCaller):
    """This person may not decide it; the approvers are named."""


class CallNotFound(ForTheCaller):
    """No such call, or its outcome is known already."""


class UnknownProvider(ForTheCaller):
    """A model reference whose provider nobody has heard of."""


class UnknownTool(ForTheCaller):
    """`--tools` names something that is not there or not a tool."""


class MalformedScript(ForTheCaller):
    """A scripted model's file or list is not a script."""


class ModuleRefused(ForTheCaller, ImportError):
    """A module whose file an agent may have written since it began, or a part of wakeful that was replaced while it
    runs. Also an ImportError: code for which the module is optional goes on without it."""


class InvalidConfig(ForTheCaller):
    """An agent's configuration does not hold together. `line` is where in its file, if that can be told."""

    line: int | None = None


class KeyMissing(InvalidConfig):
    """A provider needs a key, and the variable that would hold it is not set."""


class StoreProblem(ForTheCaller):
    """The store cannot be used as it is."""

    exit_code = 1


class StoreLocked(StoreProblem):
    """Another process holds the database."""


class AgentBusy(StoreProblem):
    """Another live process owns the thread, or the turn runs in this one already (`here`)."""

    def __init__(self, message: str, hint: str = "", *, here: bool = False) -> None:
        super().__init__(message, hint)
        self.here = here


class StoreDamaged(StoreProblem):
    """Stored bytes are not the bytes that were written; names the agent, and no other is touched."""

    def __init__(self, message: str, hint: str = "", *, agent_id: str = "", sequence: int = 0) -> None:
        super().__init__(message, hint)
        self.agent_id = agent_id
        self.sequence = sequence


class StoreRewound(StoreDamaged):
    """The database is behind its anchor: events that were on disk are not there any more."""


class TurnUnreadable(StoreDamaged):
    """The log of a turn is whole, and what it refers to (its configuration, a history) cannot be read."""


class StoreFull(StoreProblem):
    """There is no room to write; nothing that was acknowledged is lost."""


class StoreReadOnly(StoreProblem):
    """The file system or its permissions allow reading and no writing."""


class StoreTooNew(StoreProblem):
    """A newer version wrote this store; it can be read, and is not written."""


class ModelFailure(WakefulError):
    """Raised by a provider: this attempt is lost, and nothing that was glimpsed of it is believed."""

    def __init__(
        self,
        message: str,
        *,
        kind: "FailureKind",
        stage: "Stage",
        retryable: bool | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        usage: "TokenUsage | None" = None,
        diagnostics: "TransportDiagnostics | None" = None,
        limits: "tuple[ProviderLimit, ...]" = (),
        refused_call: str | None = None,
        unknown_model: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.stage = stage
        self.retryable = retryable
        """None: follows from the kind."""
        self.status = status
        self.retry_after = retry_after
        """Seconds, when the provider said so."""
        self.usage = usage
        self.diagnostics = diagnostics
        self.limits = limits
        """The rate limits that the provider reported, when it refused for one."""
        self.refused_call = refused_call
        """The model's text that the provider refused as a tool call: the model's mistake, not the request's."""
        self.unknown_model = unknown_model
        """The provider knows no model of that name."""


class ResponseGone(ModelFailure):
    """Raised by a model that was asked for an accepted answer which its provider does not have (any more)."""


class Ours(WakefulError):
    """A bug, or a guard that keeps one from doing harm."""


class OwnerFenced(Ours):
    """Another owner took over; what this one wanted to write was not written."""


class RestRefused(Ours):
    """The turn wanted to rest while something it has not seen is waiting for it."""


class AlreadyDecided(RestRefused, ForTheCaller):
    """An approval, a question or a client's call is decided once. It was decided before, by `decided_by`."""

    ended_with: "Mapping[str, Any] | None" = None
    """Of a client's call: what it ended with."""

    def __init__(self, action_id: str, status: str, decided_by: str | None, decided_at: float | None = None) -> None:
        by = f" by {decided_by}" if decided_by else ""
        when = f" at {datetime.fromtimestamp(decided_at, UTC):%Y-%m-%d %H:%M:%S} UTC" if decided_at is not None else ""
        super().__init__(f"{action_id} was {status} already{by}{when}", "Nothing was changed.")
        self.action_id = action_id
        self.status = status
        self.decided_by = decided_by
        self.decided_at = decided_at
        """Unix seconds, where that is known."""


class WindowFull(RestRefused):
    """Another turn took the rest of a spend window first; nothing was written."""


class AlreadyNoticed(RestRefused):
    """That most of a spend window is used up is said once; somebody was faster."""


class EventRefused(Ours):
    """An event without a required id, too large, or of a kind its writer may not append."""


class ReplayDiverged(Ours):
    """Folding the log again led to another decision than the one that was recorded."""
