"""What is looked at after each turn. The order, written once:

1. budgets              one that a call would have passed, or that its owner has passed: the run stops
2. the spin detector    the same call too often in a row: the run stops
3. what is pending      a person or a client: the run rests, and nothing of the following is asked
4. completion           the host's policy has seen every result; complete: the run is done
5. the interrupt        the host's source is asked; cancel: the run stops, anything else goes on
6. the turn limit       the runner's own
7. `should_continue`    asked by whoever asked for this

What is found is a fact first. Guards and policy see results in model order, each once.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.events import (
    CompletionPolicyContinued,
    CompletionPolicyStopped,
    IdenticalFailureNudged,
    InterruptIgnored,
    InterruptReceived,
    IterationBudgetExceeded,
    LoopStalled,
    ObserverFailed,
    ToolResultDiagnosed,
)
from wakeful.contracts.jsonable import plain
from wakeful.contracts.runtime_metadata import is_repeatable
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.transcript import Message, normalise
from wakeful.contracts.validation import validated
from wakeful.decisions.guards import CallSeen, IdenticalFailureTracker, RepeatedFailure, SpinDetector
from wakeful.decisions.redaction import call_envelope, redact
from wakeful.hosts.host_calls import at_once
from wakeful.hosts.loop.budgets import IterationBudget, RunBudgets
from wakeful.hosts.loop.conversation_request import ConversationRequest
from wakeful.hosts.loop.loop_events import Teller, describe
from wakeful.hosts.loop.options import LoopOptions
from wakeful.hosts.loop.result_export import execution
from wakeful.hosts.loop.run_calls import ExecutedCall
from wakeful.hosts.loop.view import LoopView
from wakeful.hosts.ports import CompletionDecision, CompletionPolicy
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration

Action: TypeAlias = Literal["cancel", "redirect", "message"]
SOURCE_ERROR = "source_error"


def read_interrupt(answer: Any) -> Message | None:
    """The message; None when the answer is none."""
    if not isinstance(answer, Message | Mapping):
        return None
    try:
        if isinstance(answer, Mapping) and "role" not in answer:
            answer = {"role": "user", **answer}  # whoever interrupts speaks to the model
        return normalise(answer)
    except InvalidValue:
        return None


def action_of(message: Message) -> Action:
    """What is to be done; what is not known is a message like any other."""
    named = message.metadata.get("interrupt_action") or message.metadata.get("action")
    if named == "cancel":
        return "cancel"
    return "redirect" if named == "redirect" else "message"


DIAGNOSTICS, POLICY, INTERRUPTS = "post_tool_result_diagnostics", "completion_policy", "interrupt_source"
BUDGET, SPIN = "iteration_budget", "spin_detector"
OWN_STOPS = frozenset({BUDGET, SPIN, INTERRUPTS, "should_continue"})
"""Who stops a turn for the loop: everybody else who asks for that is outside."""


@dataclass(slots=True, frozen=True)
class CheckOutcome:
    """What the checks come to."""

    stopped_by: str = ""
    """One of `OWN_STOPS`, when the run is to stop."""
    complete: bool = False
    interjected: bool = False
    """Somebody said something that the model has to hear."""


@dataclass(slots=True, frozen=True)
class _Result:
    """One result, whoever ran the tool."""

    tool_name: str
    result: dict[str, Any]
    turn: int
    parameters: Mapping[str, Any]
    skipped: bool = False
    done: ExecutedCall | None = None


def exceeded(budget: IterationBudget) -> IterationBudgetExceeded:
    """The fact that a budget allows no more."""
    return IterationBudgetExceeded(
        budget=budget.name, dimension=budget.dimension, current=budget.current, ceiling=budget.ceiling
    )


class BetweenTurns:
    """The checks of one run."""

    def __init__(
        self,
        options: LoopOptions,
        view: LoopView,
        teller: Teller,
        budgets: RunBudgets,
        declarations: Mapping[str, ToolDeclaration],
        find: Callable[[str], RuntimeToolDeclaration | None],
        context: Callable[[int], dict[str, Any]],
        request: Callable[[], ConversationRequest],
    ) -> None:
        self._options = options
        self._view = view
        self._teller = teller
        self._budgets = budgets
        self._declarations = declarations
        self._find = find
        self._context = context
        self._request = request
        self._spin: SpinDetector | None = options.guards.spin
        self._failures: IdenticalFailureTracker | None = options.guards.failures
        self._policy: CompletionPolicy | None = options.guards.completion
        self._seen = 0
        self._seen_own = 0

    async def look(self, *, polls: bool) -> CheckOutcome:
        """After a turn. `polls`: there may be another one, so the interrupt source is asked."""
        view, teller = self._view, self._teller
        new = self._new()
        await self._diagnose(new)
        nudges = self._guard(new)
        await self._stopping()
        decisions = await self._decisions(new)
        await teller.catch_up()
        if view.stalled is not None or view.exceeded is not None:
            return CheckOutcome(SPIN if view.stalled is not None else BUDGET)
        if await self._heed(decisions):
            return CheckOutcome(complete=True)
        for nudge in nudges:
            await teller.record(IdenticalFailureNudged(**asdict(nudge), turn=view.turn))
        await teller.catch_up()
        return await self._interrupted() if polls else CheckOutcome()

    async def over(self) -> None:
        """The run is over, or rests. Whoever sees every result sees the last ones."""
        new = self._new()
        await self._diagnose(new)
        self._guard(new)
        if (
            self._view.terminal is None or self._view.exceeded is not None
        ):  # at rest, or stopped before it was looked at
            await self._stopping()
        await self._decisions(new)
        await self._teller.catch_up()

    async def _stopping(self) -> None:
        """Budgets, then the spin detector: what stops a run is a fact, each once."""
        view = self._view
        passed = self._budgets.passed()
        if passed is not None and view.exceeded is None:
            await self._teller.record(exceeded(passed))
        stalled = self._spin.repeated if self._spin is not None else None
        if stalled is not None and view.stalled is None:
            await self._teller.record(LoopStalled(**asdict(stalled), turn=view.turn))

    def _new(self) -> list[_Result]:
        view = self._view
        own, done = view.own_executions[self._seen_own :], view.calls.executed[self._seen :]
        self._seen_own, self._seen = len(view.own_executions), len(view.calls.executed)
        return [*(_of_runner(entry, view.turn) for entry in own), *map(_of_loop, done)]

    # --- diagnostics and guards ---------------------------------------------------------------------------------------

    async def _diagnose(self, new: list[_Result]) -> None:
        ask = self._options.tools.diagnostics
        for each in new:
            if ask is None or each.done is None:
                continue
            call_id = each.done.call.call_id
            try:
                answer = await at_once(ask, execution(each.done, self._declarations), self._context(each.turn))
                if answer is None:
                    continue
                found: dict[str, Any] = redact(plain(dict(answer)))
            except Exception as error:
                await self._teller.record(ObserverFailed(surface=DIAGNOSTICS, error=describe(error)))
                continue
            event = ToolResultDiagnosed(
                tool_name=each.tool_name, tool_call_id=call_id, turn=each.turn, diagnostics=found
            )
            await self._teller.record(event)

    def _guard(self, new: list[_Result]) -> list[RepeatedFailure]:
        """Take the calls into the guards; what they would say to the model. A stall stays: the run ends with it."""
        nudges = []
        for each in new:
            if each.skipped or self._may_repeat(each.tool_name):
                continue  # nobody tried it, or it may be tried as often as one likes
            call = self._call(each)
            if self._spin is not None and self._spin.repeated is None:
                self._spin = self._spin.saw(call)
            if self._failures is not None:
                self._failures = self._failures.saw(call)
                if self._failures.repeated is not None:
                    nudges.append(self._failures.repeated)
        return nudges

    def _may_repeat(self, tool_name: str) -> bool:
        declared = self._find(tool_name)
        return declared is not None and is_repeatable(declared.runtime)

    def _call(self, each: _Result) -> CallSeen:
        failed = each.result.get("success") is False
        metadata = each.result.get("metadata")
        kind = metadata.get("error_type") if isinstance(metadata, Mapping) else None
        return CallSeen(
            each.tool_name,
            each.parameters,
            call_envelope(each.parameters, self._declarations.get(each.tool_name))["parameters"],
            str(kind or "execution_failed") if failed else "",
            str(each.result.get("error") or "") if failed else "",
        )

    # --- completion ---------------------------------------------------------------------------------------------------

    async def _decisions(self, new: list[_Result]) -> list[tuple[_Result, CompletionDecision]]:
        """What the policy says of each result. One that cannot say has said nothing, and leaves a trace."""
        decisions = []
        for each in new if self._policy is not None else ():
            assert self._policy is not None
            try:
                answer = await at_once(
                    self._policy.record_tool_result,
                    *(each.tool_name, self._find(each.tool_name), dict(each.result), self._context(each.turn)),
                    each.turn,
                )
                decision = validated(CompletionDecision, answer, "invalid_completion_decision")
            except Exception as error:
                await self._teller.record(ObserverFailed(surface=POLICY, error=describe(error)))
            else:
                decisions.append((each, decision))
        return decisions

    async def _heed(self, decisions: list[tuple[_Result, CompletionDecision]]) -> bool:
        """Is the work done? If not, the model hears what the policy has to say; if so, nobody adds anything."""
        done = next(((each, said) for each, said in decisions if said.complete), None)
        if done is not None:
            each, said = done
            await self._teller.record(
                CompletionPolicyStopped(
                    tool_name=each.tool_name, turn=each.turn, message=said.message, context=redact(said.context)
                )
            )
            return True
        for each, said in decisions:
            if said.message:
                await self._teller.record(
                    CompletionPolicyContinued(
                        tool_name=each.tool_name, turn=each.turn, message=said.message, context=redact(said.context)
                    )
                )
        return False

    # --- interrupts ---------------------------------------------------------------------------------------------------

    async def _interrupted(self) -> CheckOutcome:
        """Ask the source. One that fails stops the run: nobody could stop it any more."""
        source, view = self._options.guards.interrupts, self._view
        if source is None:
            return CheckOutcome()
        try:
            answer = await at_once(source, self._request(), self._context(view.turn))
        except Exception as error:
            details = {"reason": SOURCE_ERROR, "error": describe(error)}
            await self._teller.record(InterruptReceived(turn=view.turn, action="cancel", details=details))
            return CheckOutcome(INTERRUPTS)
        if answer is None:
            return CheckOutcome()
        message = read_interrupt(answer)
        if message is None:
            await self._teller.record(InterruptIgnored(reason="invalid_message", turn=view.turn))
            await self._teller.catch_up()
            return CheckOutcome()
        action = action_of(message)
        event = InterruptReceived(
            turn=view.turn, action=action, message=message.to_wire(), details=redact(dict(message.metadata))
        )
        await self._teller.record(event)
        await self._teller.catch_up()
        return CheckOutcome(INTERRUPTS) if action == "cancel" else CheckOutcome(interjected=True)


def _of_loop(done: ExecutedCall) -> _Result:
    kind = done.result["metadata"].get("error_type")
    call = done.call
    parameters = call.parameters if call.parameters is not None else {"malformed": call.raw}
    return _Result(done.name, done.result, done.turn, parameters, kind == "sibling_skipped", done)


def _of_runner(entry: Mapping[str, Any], turn: int) -> _Result:
    """A result of a turn runner that runs its own tools, in its own shape."""
    result, parameters = entry.get("result"), entry.get("parameters")
    return _Result(
        str(entry.get("tool_name") or ""),
        dict(result) if isinstance(result, Mapping) else dict(entry),
        turn,
        parameters if isinstance(parameters, Mapping) else {},
    )
