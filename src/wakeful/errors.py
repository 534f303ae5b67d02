"""Every error that a program may catch, in one tree, grouped by who must act.

    from wakeful.errors import AgentBusy, NotCompleted, WakefulError

WakefulError                 `message` says what happened, `hint` what to do next
├── ForTheModel              raised inside a tool: told to the model, and the run goes on
│   ├── ToolRetry                the model should try differently
│   └── OutcomeUnknown           nobody can say whether the effect happened
├── ForThePerson             the run waits for somebody
│   ├── NotCompleted             the answer was read from a run that has none
│   ├── AgentMissing             a turn needs an agent that was not supplied
│   │   └── NeverBegan               it never began, so nothing says which agent that is
│   ├── ToolMissing              a turn needs a tool that was not supplied
│   │   └── ToolsNotSupplied         several of them, by name
│   └── WorkspaceMissing         the folder that an agent works in is not there
├── ForTheCaller             fix the request
│   ├── NotBuiltYet              the parameter exists and nothing keeps it yet
│   ├── InvalidValue             a value from outside does not keep its contract
│   ├── InvalidRequest           an option that could have no effect in this run
│   │   ├── TaskNotFound             no task has this id
│   │   ├── TimerNotFound            no timer has this id or name
│   │   ├── TriggerNotFound          no trigger has this id or name
│   │   ├── ChannelNotFound          no phone was added under this name
│   │   ├── TemplateNotFound         no template is at this place
│   │   ├── AgentNameTaken           another agent has that name
│   │   └── DefinedInCode            the agent belongs to a file or a program, and is changed there
│   ├── InvalidConfig            an agent, a tool, a policy or a file that cannot be used
│   │   ├── InvalidBudget            a budget that cannot hold
│   │   ├── KeyMissing               a provider's key is not there
│   │   ├── UnknownField             an agent's file has a field that nobody knows
│   │   └── UnknownSetting           a setting of a model that nobody knows
│   ├── CursorGone               a cursor of a feed whose rows have left
│   ├── ContextWindowUnknown     something needs the size of a model's window, and nobody knows it
│   ├── KeyReused                the key belongs to another prompt, agent or request
│   ├── RequestUndecided         the first request of an idempotency key has no answer that can be given
│   ├── DepsMissing              tools need deps and none were given
│   ├── WrongDeps                deps of another type than the agent's `deps_type`
│   ├── AgentNotFound            no agent of the runtime has this name
│   ├── AgentStopped             the agent was stopped and takes no messages
│   ├── MessageNotFound          no message has this id, or it expired
│   ├── TurnNotFound             no turn has this id
│   │   └── TurnDeleted              its thread was deleted
│   ├── ThreadNotFound           no thread has this name
│   ├── RetryRefused             the turn cannot be tried again; says what can be done instead
│   ├── TurnOver                 the turn has ended, and what was asked of it cannot be done
│   ├── CallNotFound             no call has this id
│   ├── ApprovalNotFound         no approval or question has this id
│   ├── AlreadyDecided           somebody decided it before; says who and when
│   ├── ArtifactNotFound         no artifact has this id
│   │   └── ArtifactExpired      it was removed when it had reached its age
│   ├── RequestNotFound          no client's request has this id
│   ├── NotEntitled              somebody else has to decide this
│   ├── WorkflowNotFound         no workflow has this name
│   ├── WorkflowNameTaken        another workflow has it
│   ├── InvalidWorkflow          a graph that does not hold together
│   ├── ModuleRefused            code that an agent may have written is not imported
│   ├── UnknownProvider          no provider has this name
│   ├── UnknownTool              no tool has this name
│   ├── UnknownHook              no point at which a host may listen has this name
│   ├── MalformedScript          a scripted model's file that cannot be read
│   ├── AbilityRefused           a host may not call this ability
│   ├── PendingActionError       a host's pending action that cannot be decided so
│   ├── RunRefused               a caller may not see this run
│   └── StoreProblem             the store cannot be used as it is
│       ├── StoreLocked              another process holds it
│       ├── AgentBusy                another process runs this thread of the agent
│       ├── StoreDamaged             stored bytes are not what was written
│       │   ├── StoreRewound             the end of the log is missing
│       │   └── TurnUnreadable           what a turn rests on beside the log is gone
│       ├── StoreFull                the disk is full
│       ├── StoreReadOnly            it may be read, and not written
│       └── StoreTooNew              a newer wakeful wrote it
├── ModelFailure             a request to a provider failed; what is retried is over when a program sees it
│   └── ResponseGone             the provider does not have the answer that was left with it
└── Ours                     a bug, or a guard against one
    ├── OwnerFenced                   this owner was replaced and may not write
    ├── EventRefused             an event that may not be written
    └── ReplayDiverged           the log and the decisions disagree

Each is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeful.contracts.amounts import InvalidBudget as InvalidBudget
    from wakeful.contracts.errors import AgentBusy as AgentBusy
    from wakeful.contracts.errors import AgentMissing as AgentMissing
    from wakeful.contracts.errors import AgentNameTaken as AgentNameTaken
    from wakeful.contracts.errors import AgentNotFound as AgentNotFound
    from wakeful.contracts.errors import AgentStopped as AgentStopped
    from wakeful.contracts.errors import AlreadyDecided as AlreadyDecided
    from wakeful.contracts.errors import ApprovalNotFound as ApprovalNotFound
    from wakeful.contracts.errors import ArtifactExpired as ArtifactExpired
    from wakeful.contracts.errors import ArtifactNotFound as ArtifactNotFound
    from wakeful.contracts.errors import CallNotFound as CallNotFound
    from wakeful.contracts.errors import ChannelNotFound as ChannelNotFound
    from wakeful.contracts.errors import ContextWindowUnknown as ContextWindowUnknown
    from wakeful.contracts.errors import CursorGone as CursorGone
    from wakeful.contracts.errors import DefinedInCode as DefinedInCode
    from wakeful.contracts.errors import DepsMissing as DepsMissing
    from wakeful.contracts.errors import EventRefused as EventRefused
    from wakeful.contracts.errors import ForTheCaller as ForTheCaller
    from wakeful.contracts.errors import ForTheModel as ForTheModel
    from wakeful.contracts.errors import ForThePerson as ForThePerson
    from wakeful.contracts.errors import InvalidConfig as InvalidConfig
    from wakeful.contracts.errors import InvalidRequest as InvalidRequest
    from wakeful.contracts.errors import InvalidValue as InvalidValue
    from wakeful.contracts.errors import InvalidWorkflow as InvalidWorkflow
    from wakeful.contracts.errors import KeyMissing as KeyMissing
    from wakeful.contracts.errors import KeyReused as KeyReused
    from wakeful.contracts.errors import MalformedScript as MalformedScript
    from wakeful.contracts.errors import MessageNotFound as MessageNotFound
    from wakeful.contracts.errors import ModelFailure as ModelFailure
    from wakeful.contracts.errors import ModuleRefused as ModuleRefused
    from wakeful.contracts.errors import NotBuiltYet as NotBuiltYet
    from wakeful.contracts.errors import NotCompleted as NotCompleted
    from wakeful.contracts.errors import NotEntitled as NotEntitled
    from wakeful.contracts.errors import Ours as Ours
    from wakeful.contracts.errors import OutcomeUnknown as OutcomeUnknown
    from wakeful.contracts.errors import OwnerFenced as OwnerFenced
    from wakeful.contracts.errors import ReplayDiverged as ReplayDiverged
    from wakeful.contracts.errors import RequestNotFound as RequestNotFound
    from wakeful.contracts.errors import RequestUndecided as RequestUndecided
    from wakeful.contracts.errors import ResponseGone as ResponseGone
    from wakeful.contracts.errors import RetryRefused as RetryRefused
    from wakeful.contracts.errors import StoreDamaged as StoreDamaged
    from wakeful.contracts.errors import StoreFull as StoreFull
    from wakeful.contracts.errors import StoreLocked as StoreLocked
    from wakeful.contracts.errors import StoreProblem as StoreProblem
    from wakeful.contracts.errors import StoreReadOnly as StoreReadOnly
    from wakeful.contracts.errors import StoreRewound as StoreRewound
    from wakeful.contracts.errors import StoreTooNew as StoreTooNew
    from wakeful.contracts.errors import TaskNotFound as TaskNotFound
    from wakeful.contracts.errors import TemplateNotFound as TemplateNotFound
    from wakeful.contracts.errors import ThreadNotFound as ThreadNotFound
    from wakeful.contracts.errors import TimerNotFound as TimerNotFound
    from wakeful.contracts.errors import ToolMissing as ToolMissing
    from wakeful.contracts.errors import ToolRetry as ToolRetry
    from wakeful.contracts.errors import TriggerNotFound as TriggerNotFound
    from wakeful.contracts.errors import TurnDeleted as TurnDeleted
    from wakeful.contracts.errors import TurnNotFound as TurnNotFound
    from wakeful.contracts.errors import TurnOver as TurnOver
    from wakeful.contracts.errors import TurnUnreadable as TurnUnreadable
    from wakeful.contracts.errors import UnknownProvider as UnknownProvider
    from wakeful.contracts.errors import UnknownTool as UnknownTool
    from wakeful.contracts.errors import WakefulError as WakefulError
    from wakeful.contracts.errors import WorkflowNameTaken as WorkflowNameTaken
    from wakeful.contracts.errors import WorkflowNotFound as WorkflowNotFound
    from wakeful.contracts.errors import WorkspaceMissing as WorkspaceMissing
    from wakeful.contracts.errors import WrongDeps as WrongDeps
    from wakeful.contracts.setting_names import UnknownSetting as UnknownSetting
    from wakeful.engine.agent_data import UnknownField as UnknownField
    from wakeful.hosts.abilities.registry import AbilityRefused as AbilityRefused
    from wakeful.hosts.actions.pending_action import PendingActionError as PendingActionError
    from wakeful.hosts.run_access import RunRefused as RunRefused
    from wakeful.service.commands.agent_rebuild import NeverBegan as NeverBegan
    from wakeful.service.commands.agent_rebuild import ToolsNotSupplied as ToolsNotSupplied
    from wakeful.service.hooks import UnknownHook as UnknownHook

_WHERE = {
    "AbilityRefused": "wakeful.hosts.abilities.registry",
    "AgentBusy": "wakeful.contracts.errors",
    "AgentMissing": "wakeful.contracts.errors",
    "AgentNameTaken": "wakeful.contracts.errors",
    "AgentNotFound": "wakeful.contracts.errors",
    "AgentStopped": "wakeful.contracts.errors",
    "AlreadyDecided": "wakeful.contracts.errors",
    "ApprovalNotFound": "wakeful.contracts.errors",
    "ArtifactExpired": "wakeful.contracts.errors",
    "ArtifactNotFound": "wakeful.contracts.errors",
    "CallNotFound": "wakeful.contracts.errors",
    "ChannelNotFound": "wakeful.contracts.errors",
    "ContextWindowUnknown": "wakeful.contracts.errors",
    "CursorGone": "wakeful.contracts.errors",
    "DefinedInCode": "wakeful.contracts.errors",
    "DepsMissing": "wakeful.contracts.errors",
    "EventRefused": "wakeful.contracts.errors",
    "ForTheCaller": "wakeful.contracts.errors",
    "ForTheModel": "wakeful.contracts.errors",
    "ForThePerson": "wakeful.contracts.errors",
    "InvalidBudget": "wakeful.contracts.amounts",
    "InvalidConfig": "wakeful.contracts.errors",
    "InvalidRequest": "wakeful.contracts.errors",
    "InvalidValue": "wakeful.contracts.errors",
    "InvalidWorkflow": "wakeful.contracts.errors",
    "KeyMissing": "wakeful.contracts.errors",
    "KeyReused": "wakeful.contracts.errors",
    "MalformedScript": "wakeful.contracts.errors",
    "MessageNotFound": "wakeful.contracts.errors",
    "ModelFailure": "wakeful.contracts.errors",
    "ModuleRefused": "wakeful.contracts.errors",
    "NeverBegan": "wakeful.service.commands.agent_rebuild",
    "NotBuiltYet": "wakeful.contracts.errors",
    "NotCompleted": "wakeful.contracts.errors",
    "NotEntitled": "wakeful.contracts.errors",
    "Ours": "wakeful.contracts.errors",
    "OutcomeUnknown": "wakeful.contracts.errors",
    "OwnerFenced": "wakeful.contracts.errors",
    "PendingActionError": "wakeful.hosts.actions.pending_action",
    "ReplayDiverged": "wakeful.contracts.errors",
    "RequestNotFound": "wakeful.contracts.errors",
    "RequestUndecided": "wakeful.contracts.errors",
    "ResponseGone": "wakeful.contracts.errors",
    "RunRefused": "wakeful.hosts.run_access",
    "StoreDamaged": "wakeful.contracts.errors",
    "StoreFull": "wakeful.contracts.errors",
    "StoreLocked": "wakeful.contracts.errors",
    "StoreProblem": "wakeful.contracts.errors",
    "StoreReadOnly": "wakeful.contracts.errors",
    "StoreRewound": "wakeful.contracts.errors",
    "StoreTooNew": "wakeful.contracts.errors",
    "TaskNotFound": "wakeful.contracts.errors",
    "TemplateNotFound": "wakeful.contracts.errors",
    "TimerNotFound": "wakeful.contracts.errors",
    "ToolMissing": "wakeful.contracts.errors",
    "ToolRetry": "wakeful.contracts.errors",
    "ToolsNotSupplied": "wakeful.service.commands.agent_rebuild",
    "TriggerNotFound": "wakeful.contracts.errors",
    "ThreadNotFound": "wakeful.contracts.errors",
    "TurnDeleted": "wakeful.contracts.errors",
    "TurnNotFound": "wakeful.contracts.errors",
    "RetryRefused": "wakeful.contracts.errors",
    "TurnOver": "wakeful.contracts.errors",
    "TurnUnreadable": "wakeful.contracts.errors",
    "UnknownField": "wakeful.engine.agent_data",
    "UnknownHook": "wakeful.service.hooks",
    "UnknownProvider": "wakeful.contracts.errors",
    "UnknownSetting": "wakeful.contracts.setting_names",
    "UnknownTool": "wakeful.contracts.errors",
    "WakefulError": "wakeful.contracts.errors",
    "WorkflowNameTaken": "wakeful.contracts.errors",
    "WorkflowNotFound": "wakeful.contracts.errors",
    "WorkspaceMissing": "wakeful.contracts.errors",
    "WrongDeps": "wakeful.contracts.errors",
}

__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'wakeful.errors' has no attribute {name!r}")
    value = getattr(import_module(where), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
