"""What hosts call: `ConversationLoop`, and `mediate_turn` for those that run a loop of their own.

The mediation of one turn by itself is one turn of the one loop, so that its calls pass the one gate.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from wakeful.bootstrap.engines import new_engine, own_price
from wakeful.bootstrap.stores import opened_store
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.transcript import Message, check_pairing, normalise_all
from wakeful.hosts.loop.conversation_result import ConversationResult
from wakeful.hosts.loop.conversation_run import OneRun
from wakeful.hosts.loop.options import MEDIATOR_SECONDS, LoopSettings, read_options
from wakeful.hosts.loop.run_turns import RunGround, RunTurns
from wakeful.hosts.policies.host_policy import AgentPolicies, RememberedApprovals
from wakeful.hosts.ports import ToolExecutor, TurnRunner
from wakeful.ports import Clock, Ids, Store
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks

OWN = ("max_turns", "should_continue")
"""Options that say how many turns there are: here it is one."""


class ConversationLoop:
    """Runs conversations. Without a store each run has a log of its own in memory, gone when the run is over.

    A run that names its `run_id` and its session is run once: by this object, and by everybody who shares its store.
    `mediator_timeout` is how many seconds a `pre_tool_mediator` has; one that takes longer has denied.
    `private_audit` hears of every call that an executor carried out what audits need and nobody else may see.
    `price` says what the host's turn runner costs, in dollars for a million tokens, like a price in `wakeful.toml`:
    `{"input": "3", "output": "15"}`. An owner who limits what is spent over time lets no model run that has none.
    `tool_policy` and `action_policy` are the agent's own: what a run says in its context is heard beside the one and in
    the place of the other, and neither shows or permits what the agent's own hides or forbids. `remembered_approvals`
    is asked whether a user has accepted a tool for good; it is heard only where nothing forbids.
    `executor_targets` are executors by name: a tool whose `runtime.executor_target` names one goes there, nowhere else.
    """

    def __init__(
        self,
        *,
        store: Store | str | None = None,
        hooks: HookRegistry = default_hooks,
        clock: Clock | None = None,
        ids: Ids | None = None,
        executor_targets: Mapping[str, ToolExecutor] | None = None,
        mediator_timeout: float = MEDIATOR_SECONDS,
        private_audit: Callable[[dict[str, Any]], Any] | None = None,
        price: Mapping[str, Any] | None = None,
        tool_policy: Mapping[str, Any] | None = None,
        action_policy: Mapping[str, Any] | None = None,
        remembered_approvals: RememberedApprovals | None = None,
    ) -> None:
        self._store = store
        self._hooks = hooks
        self._clock = clock
        self._ids = ids
        self._claimed: set[str] = set()
        targets = dict(executor_targets or {})
        for name, executor in targets.items():
            if not callable(getattr(executor, "execute", None)):
                raise InvalidConfig(f"the executor target {name!r} is a {type(executor).__name__} without execute()")
        self._settings = LoopSettings(
            targets,
            mediator_timeout,
            private_audit,
            own_price(price, "ConversationLoop: price") if price is not None else None,
            AgentPolicies.read(tool_policy, action_policy, remembered_approvals),
        )

    async def run(
        self,
        messages: Iterable[Message | Mapping[str, Any]],
        turn_runner: TurnRunner | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> ConversationResult:
        """One run. Raises for a mistake in what was passed; whatever happens afterwards is in the result.

        `turn_runner(messages, context)` gets the transcript as envelopes and returns an object: `content`,
        `tool_calls`, `usage` and so on, or a whole conversation result when it runs its own tools. The option
        `provider_turn_adapter` may stand in its place.
        """
        chosen = read_options(options)
        if (turn_runner is None) == (chosen.provider.adapter is None):
            raise InvalidConfig(
                "a run has a turn runner or the option 'provider_turn_adapter'",
                f"{'give one of them' if turn_runner is None else 'leave one of them out'}",
            )
        given = normalise_all(messages)
        check_pairing(given)
        self._hooks.load()
        async with opened_store(self._store) as store:
            around = new_engine(store, clock=self._clock, ids=self._ids)
            ground = RunGround.of(around, self._hooks, chosen, given)
            return await OneRun(ground, RunTurns(ground, turn_runner, self._settings), self._claimed).carry_out()


async def mediate_turn(
    messages: Iterable[Message | Mapping[str, Any]],
    turn: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
    *,
    loop: ConversationLoop | None = None,
) -> dict[str, Any]:
    """Run the calls of a turn that the host has taken: `turn` is what a turn runner returns. Raises like the loop.

    `conversation_complete`: nothing was called, or a mediator or the completion policy said that with this turn the run
    is complete.
    """
    given = {name: value for name, value in (options or {}).items() if name not in OWN}
    ran = await (loop or ConversationLoop()).run(
        messages, lambda *_: turn, {**given, "max_turns": 1, "should_continue": None}
    )
    result = ran.to_wire()
    called = bool(turn.get("tool_calls"))
    said_so = "completed_by" in ran.metadata or any(event.type == "completion_policy_stop" for event in ran.events)
    return {
        "messages": result["messages"],
        "tool_execution_results": result["tool_execution_results"],
        "tool_events": result["tool_events"],
        "tool_audit_events": result["tool_audit_events"],
        "events": result["events"],
        "conversation_complete": ran.completed and (not called or said_so),
        "exceeded_budget": ran.budget,
        "approval_required": result.get("approval_required"),
        "runtime_tool_pending": result.get("runtime_tool_pending"),
    }
