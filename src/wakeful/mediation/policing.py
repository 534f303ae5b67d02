"""The policy of one turn, brought to bear on its calls.

Everything it needs is in the log: the configuration the turn runs under, the rules people added while deciding, what
the turn has seen so far. Time is the time of the newest fact. So the same verdict comes out when it is replayed.
"""

from collections.abc import Callable
from typing import TypeAlias

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.policies import Rule
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.policy.judging import CallUnderJudgement, CompiledPolicy, compile_policy, compiled_once, judge
from wakeful.decisions.state import TurnState
from wakeful.mediation.binding import bind, held_by
from wakeful.mediation.gate import Proposal

WorkedOut: TypeAlias = tuple[TurnConfig, tuple[int, int], CompiledPolicy]
"""A policy ready to judge by, and what it rests on."""


_STRICTNESS = ("allow", "ask", "deny")


class TurnPolicy:
    """Judges the calls of one turn."""

    def __init__(self, state: Callable[[], TurnState], config: Callable[[], TurnConfig], secret: bytes) -> None:
        self._state = state
        self._config = config
        self._secret = secret
        self._compiled: WorkedOut | None = None
        """The turn's own; children share it, for their tools are a part of the turn's."""
        self._below: WorkedOut | None = None
        """The newest of a level that has a tool the turn has not."""
        self._others: dict[str | None, tuple[TurnConfig, TurnConfig]] = {}
        """Of levels at which another agent works: its configuration, and the same under the turn's policy."""

    def __call__(self, proposal: Proposal, said: tuple[Verdict, ...]) -> Verdict:
        """The verdict, given what predicates and hooks said. Does not raise."""
        level, config = proposal.call.level, self._config()
        if level.config is None or level.config.agent_name == config.agent_name:
            return self._judged(proposal, said, self._policy(proposal))
        # Another agent works for this turn: its own policy holds, and the turn's, whichever is stricter.
        known = self._others.get(level.id)
        if known is None or known[0] is not level.config:
            known = self._others[level.id] = level.config, level.config.changed(policy=config.policy)
        changes = self._changes()
        verdicts = [self._judged(proposal, said, self._worked_out(None, each, changes)[2]) for each in known]
        return max(verdicts, key=lambda verdict: _STRICTNESS.index(verdict.decision))

    def _judged(self, proposal: Proposal, said: tuple[Verdict, ...], policy: CompiledPolicy) -> Verdict:
        state = self._state()
        call = CallUnderJudgement(
            name=proposal.declared.name,
            arguments=proposal.arguments,
            now=state.now / 1_000_000,
            derived_from=state.derived_from,
            exposure=state.exposure,
            traits=proposal.declaration if proposal.declaration is not proposal.declared else None,
            call_hash=self._call_hash(proposal, policy),
            hooks=said,
        )
        return judge(call, policy)

    def _policy(self, proposal: Proposal) -> CompiledPolicy:
        """Worked out once, and again when a person added or revoked a rule or the code changed."""
        config, changes = self._config(), self._changes()
        below = proposal.call.level.config
        if below is not None and config.tool(proposal.declared.name) is None:
            self._below = self._worked_out(self._below, below, changes)
            return self._below[2]
        self._compiled = self._worked_out(self._compiled, config, changes)
        return self._compiled[2]

    def _changes(self) -> tuple[int, int]:
        state = self._state()
        return len(state.standing_rules), len(state.revoked_rules)

    def _worked_out(
        self,
        known: tuple[TurnConfig, tuple[int, int], CompiledPolicy] | None,
        config: TurnConfig,
        changes: tuple[int, int],
    ) -> tuple[TurnConfig, tuple[int, int], CompiledPolicy]:
        if known is not None and known[0] is config and known[1] == changes:
            return known
        state, policy = self._state(), config.policy
        added = tuple(Rule.model_validate(rule) for rule in state.standing_rules)
        if added or state.revoked_rules:
            held = tuple(rule for rule in (*policy.rules, *added) if rule.id not in state.revoked_rules)
            return config, changes, compile_policy(policy.model_copy(update={"rules": held}), config.tools)
        return config, changes, compiled_once(policy, config.tools)

    def _call_hash(self, proposal: Proposal, policy: CompiledPolicy) -> str | None:
        # Only a rule about one exact call needs it, and it costs more than the rest of the verdict.
        if not policy.by_hash:
            return None
        held = held_by(proposal.confinement)
        return bind(self._secret, proposal.declared, proposal.arguments, proposal.directory, held)
