"""The policy of one turn, brought to bear on its calls.

Everything it needs is in the log: the configuration the turn runs under, the rules people added while deciding, what
the turn has seen so far. Time is the time of the newest fact. So the same verdict comes out when it is replayed.
"""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.events import ContextResolved
from wakeful.contracts.verdicts import Verdict
from wakeful.decisions.levels import Level
from wakeful.decisions.policy.owner_text import OwnerText
from wakeful.decisions.policy.provenance import is_instruction
from wakeful.decisions.policy.verdict import CallUnderJudgement, CompiledPolicy, judge, with_answers
from wakeful.decisions.prompt import cut
from wakeful.decisions.state import TurnState
from wakeful.gate.approval_binding import bind, held_by
from wakeful.gate.call_at_gate import CallAtGate
from wakeful.tools.artifact_reader import with_reader
from wakeful.tools.results import READ_ARTIFACT

WorkedOut: TypeAlias = tuple[TurnConfig, tuple[int, int], CompiledPolicy]
"""A policy ready to judge by, and what it rests on."""

_STRICTNESS = ("allow", "ask", "deny")
_OWNERS = frozenset({"agent_instructions", "agent_guidance", "workspace_guidance"})
"""Blocks of a prompt that hold the owner's words."""


class OwnerOf:
    """The owner's words, as far as a turn has heard or read them. Made for one verdict, and mostly not asked."""

    __slots__ = ("_instructions", "_state")

    def __init__(self, state: TurnState, instructions: Callable[[], OwnerText]) -> None:
        self._state = state
        self._instructions = instructions

    def _texts(self) -> tuple[OwnerText, ...]:
        return self._state.thread.owner_said, self._instructions(), self._state.thread.owner_files

    def holds_text(self, value: str) -> bool:
        return any(text.holds_text(value) for text in self._texts())

    def holds_number(self, value: int | float | Decimal) -> bool:
        return any(text.holds_number(value) for text in self._texts())


def owner_instructions(
    config: TurnConfig | None, context: ContextResolved | None, *, is_instructed: bool = True
) -> OwnerText:
    """What of a prompt the owner wrote: instructions and guidance, without files that nobody has accepted.

    Of a workflow, its graph and its inputs, when it was the owner who started it.
    """
    words = OwnerText()
    untrusted = context.untrusted_refs if context is not None else ()
    for block in cut(config) if config is not None else ():
        if block.kind in _OWNERS and block.source not in untrusted:
            words.add(block.text)
    if config is not None and config.workflow is not None and is_instructed:
        words.add(json.dumps(config.workflow.model_dump(mode="json"), ensure_ascii=False, indent=1))
    return words


def _is_same_agent(level: Level, parent: Level) -> bool:
    return level.config is None or parent.config is None or level.config.agent_name == parent.config.agent_name


def _reading(config: TurnConfig, at: CallAtGate) -> TurnConfig:
    """What a call is judged by: with `read_artifact`, which no configuration names, where that is what is called."""
    wider = at.declared.name == READ_ARTIFACT and config.tool(READ_ARTIFACT) is None
    return with_reader(config) if wider else config


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
        self._told: dict[int, tuple[TurnConfig | None, OwnerText]] = {}
        """The owner's words in the prompts of agents, by the configuration they are of."""
        self._others: dict[str | None, tuple[TurnConfig, TurnConfig]] = {}
        """Of levels at which another agent works: its configuration, and the same under the turn's policy."""

    def __call__(self, at: CallAtGate, said: tuple[Verdict, ...]) -> Verdict:
        """The verdict, given what predicates and hooks said. Does not raise."""
        level, config = at.call.level, self._config()
        if level.config is None or level.config.agent_name == config.agent_name:
            return self._judged(at, said, self._policy(at))
        # Another agent works for this turn: its own policy holds, and the turn's, whichever is stricter.
        known = self._others.get(level.id)
        if known is None or known[0] is not level.config:
            known = self._others[level.id] = level.config, level.config.changed(policy=config.policy)
        changes = self._changes()
        verdicts = [self._judged(at, said, self._worked_out(None, _reading(each, at), changes)[2]) for each in known]
        return max(verdicts, key=lambda verdict: _STRICTNESS.index(verdict.decision))

    def _judged(self, at: CallAtGate, said: tuple[Verdict, ...], policy: CompiledPolicy) -> Verdict:
        state = self._state()
        call = CallUnderJudgement(
            name=at.declared.name,
            arguments=at.arguments,
            now=state.time.now / 1_000_000,
            derived_from=state.terms.derived_from,
            exposure=state.thread.exposure,
            owner=OwnerOf(state, self._instructions(at.call.level)),
            traits=at.declaration if at.declaration is not at.declared else None,
            call_hash=self._call_hash(at, policy),
            hooks=said,
        )
        return judge(call, policy)

    def _instructions(self, level: Level) -> Callable[[], OwnerText]:
        """What the program of the agent at work says. A child has its instructions from a model: its agent's count."""
        while level.parent is not None and _is_same_agent(level, level.parent):
            level = level.parent
        config = level.config

        def told() -> OwnerText:
            known = self._told.get(id(config))
            if known is None or known[0] is not config:
                state = self._state()
                words = owner_instructions(
                    config, state.terms.context, is_instructed=is_instruction(state.terms.derived_from)
                )
                known = self._told[id(config)] = config, words
            return known[1]

        return told

    def _policy(self, at: CallAtGate) -> CompiledPolicy:
        """Worked out once, and again when a person added or revoked a rule or the code changed."""
        config, changes = self._config(), self._changes()
        if at.declared.name == READ_ARTIFACT and config.tool(READ_ARTIFACT) is None:
            return self._worked_out(None, _reading(config, at), changes)[2]
        below = at.call.level.config
        if below is not None and config.tool(at.declared.name) is None:
            self._below = self._worked_out(self._below, below, changes)
            return self._below[2]
        self._compiled = self._worked_out(self._compiled, config, changes)
        return self._compiled[2]

    def _changes(self) -> tuple[int, int]:
        state = self._state()
        return len(state.rules.standing), len(state.rules.revoked)

    def _worked_out(
        self,
        known: tuple[TurnConfig, tuple[int, int], CompiledPolicy] | None,
        config: TurnConfig,
        changes: tuple[int, int],
    ) -> tuple[TurnConfig, tuple[int, int], CompiledPolicy]:
        if known is not None and known[0] is config and known[1] == changes:
            return known
        rules = self._state().rules
        return config, changes, with_answers(config.policy, config.tools, rules.standing, rules.revoked)

    def _call_hash(self, at: CallAtGate, policy: CompiledPolicy) -> str | None:
        # Only a rule about one exact call needs it, and it costs more than the rest of the verdict.
        if not policy.by_hash:
            return None
        held = held_by(at.confinement)
        return bind(self._secret, at.declared, at.arguments, at.directory, held)
