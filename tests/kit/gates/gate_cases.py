"""Made-up gates and calls: tools, policies, rules, hooks and arguments, and what the gate says to each call in turn.

Most of a case is plain, so that one thing alone decides about many of them.
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, TypeAlias, cast

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.conversation import CallPart
from wakeful.contracts.events.tools import Opinion
from wakeful.contracts.policies import GatePolicy, ProvenancePolicy, Rule, ToolPolicy
from wakeful.contracts.tools import Confinement, ToolDeclaration
from wakeful.decisions.levels import Call, Level
from wakeful.decisions.policy.permissions import default_policy
from wakeful.decisions.policy.provenance import NOTHING_SEEN, Exposure
from wakeful.decisions.state import TurnState
from wakeful.gate.call_at_gate import Admission, CallAtGate, Consultation
from wakeful.gate.locks import LockTable
from wakeful.gate.passage import Mediator
from wakeful.gate.turn_gate import Consult, GateParts
from wakeful.gate.turn_policy import TurnPolicy
from wakeful.tools.proposal import ProposedCall
from wakeful.tools.tool import DeclaredTool

Wish: TypeAlias = Literal["never", "always", "by argument", "raises"]
SECRET = b"s" * 32
NAME = "look"
SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "password": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["text"],
    "additionalProperties": False,
}
STRICT = "strict"
"""The text with which a call does more than its tool declares, where a tool looks at it."""


@dataclass(frozen=True)
class Step:
    """One call, and what the turn has seen and heard by then."""

    arguments: dict[str, Any] | None
    exposure: Exposure = NOTHING_SEEN
    derived_from: str = "operator_instruction"
    standing: tuple[Rule, ...] = ()
    """What people have added before it."""
    revoked: tuple[str, ...] = ()
    seconds: int = 0
    lock_is_held: bool = False


@dataclass(frozen=True)
class Case:
    """One gate, and the calls that come to it."""

    declared: ToolDeclaration
    policy: GatePolicy
    steps: tuple[Step, ...]
    wish: Wish = "never"
    looks_at_call: bool = False
    confinement: Confinement | None = None
    hook: Literal["none", "silent", "allow", "ask", "deny", "rewrite", "raises"] = "none"
    hook_on_ask: bool = False
    injected: bool = False
    other: GatePolicy | None = None
    """Another agent works for the turn, under this policy."""


class MadeUpTool(DeclaredTool):
    """A tool as a case has it."""

    def __init__(self, case: Case) -> None:
        self._declaration = case.declared
        self._case = case

    def traits(self, arguments: dict[str, Any]) -> ToolDeclaration:
        if not self._case.looks_at_call or arguments.get("text") != STRICT:
            return self._declaration
        stricter = {"effect": "irreversible", "changes_state": True, "reads_private": True, "leaves_machine": True}
        return self._declaration.model_copy(update={**stricter, "permission_class": "secrets"})

    @property
    def approval(self) -> bool | Callable[[ProposedCall], bool | str]:
        return {"never": False, "always": True}.get(self._case.wish, self._asks)

    def _asks(self, call: ProposedCall) -> bool | str:
        if self._case.wish == "raises":
            raise RuntimeError("cannot say")
        return "it is strict" if call.arguments.get("text") == STRICT else False

    def confinement(self, arguments: dict[str, Any]) -> Confinement | None:
        return self._case.confinement


def _hook_of(case: Case) -> Consult:
    async def hook(at: CallAtGate) -> Consultation:
        if case.hook == "raises":
            raise RuntimeError("cannot say")
        if case.hook == "rewrite":
            changed = {"text": STRICT}
            return Consultation((Opinion(by="hook", decision="allow", arguments=changed),), arguments=changed)
        if case.hook == "silent":
            return Consultation()
        return Consultation((Opinion(by="hook", decision=cast(Any, case.hook), reason="I say so"),))

    return hook


# --- the gate of a case --------------------------------------------------------------------------------------------

Shortcut: TypeAlias = Callable[[CallAtGate, GateParts], bool]
Makes: TypeAlias = Callable[[TurnPolicy, TurnState, TurnConfig], Shortcut | None]
"""The shortcut of a gate, or none."""


def told(case: Case, makes: Makes) -> list[Any]:
    """What the gate of this case says to each of its calls, in turn."""
    config = TurnConfig(
        agent_name="any",
        model_ref="m",
        tools=(case.declared,),
        policy=case.policy,
        injected_tool_args={"why": "say why"} if case.injected else {},
    )
    state, locks = TurnState(), LockTable()
    level: Level = state
    if case.other is not None:
        level = Level(id="child", config=config.changed(agent_name="other", policy=case.other), parent=state)
    policy = TurnPolicy(lambda: state, lambda: config, SECRET)
    parts = GateParts(
        policy,
        makes(policy, state, config),
        consult=(_hook_of(case),) if case.hook != "none" else (),
        consult_on_ask=_hook_of(case) if case.hook_on_ask else None,
        locks=locks,
        lock_seconds=0.001,
        secret=SECRET,
        now=lambda: 5.0,
    )
    gate = Mediator(level.config or config, {NAME: MadeUpTool(case)}, "turn", parts)
    said = []
    for place, step in enumerate(case.steps):
        state.thread.exposure, state.terms.derived_from = step.exposure, step.derived_from
        state.rules.standing += [rule.model_dump(mode="json") for rule in step.standing]
        state.rules.revoked |= set(step.revoked)
        state.time.now = step.seconds * 1_000_000
        if step.lock_is_held:
            locks.try_claim("somebody", ["till"])
        part = CallPart(call_id=f"call_{place}", name=NAME, arguments=step.arguments)
        call = Call(part, 1, place, level)
        admission = gate.admit(call, copy.deepcopy(step.arguments), now=1.0, batch_id="b", scheduling="parallel")
        while admission.later is not None:
            admission = asyncio.run(_waited(admission.later))()
        said.append(_plain(admission))
        gate.locks.let_go(call.call_id)
        locks.release("somebody")
    return said


async def _waited(later: Callable[[], Awaitable[Callable[[], Admission]]]) -> Callable[[], Admission]:
    return await later()


def _plain(admission: Admission) -> Any:
    events = [(event.kind, event.model_dump(exclude_unset=True)) for event in admission.events]
    at = admission.dispatch
    runs = None
    if at is not None:
        told = at.record
        of_outcome = (told.taken_up_at, told.injected_args, told.permission_ref, told.approval_id, told.hook_outcomes)
        run = (at.arguments, at.declaration, at.idempotency_key, at.attempt, at.lock_owner, at.confinement)
        runs = (run, of_outcome, at.verdict)
    return events, runs, admission.permission_at, admission.sandbox_at


# --- cases ---------------------------------------------------------------------------------------------------------


def _rule(random: Random) -> Rule:
    return Rule(
        match=random.choice([NAME, "l*", "other"]),
        decision=cast(Any, random.choice(["allow", "ask", "deny"])),
        arguments=random.choice([{}, {"text": STRICT}]),
        expires=random.choice([None, 9.0]),
        origin=cast(Any, random.choice(["owner", "always"])),
        id=random.choice(["", "r1", "r2"]),
    )


def _rules(random: Random) -> tuple[Rule, ...]:
    return tuple(_rule(random) for _ in range(random.randint(1, 2)))


def _one_of(*choices: Any) -> Callable[[Random], Any]:
    return lambda random: random.choice(choices)


def _classes(random: Random) -> ToolPolicy:
    context = random.choice(["library", "thread"])
    return default_policy(cast(Any, context), unconfined=cast(Any, random.choice(["allow", "deny"])))


_Drawn: TypeAlias = dict[str, Callable[[Random], Any]]
_OF_TOOL: _Drawn = {
    "effect": _one_of("irreversible", "keyed"),
    "permission_class": _one_of("secrets", "execute", "network", "workspace_write"),
    "runtime_owner": _one_of("client", "mcp_server"),
    "locks": _one_of(("till",)),
    "reads_private": _one_of(True),
    "leaves_machine": _one_of(True),
    "untrusted": _one_of(True),
    "answered_by": _one_of("person", "client"),
    "sensitive_parameters": _one_of(("text",)),
    "timeout": _one_of(2.5),
}
_OF_POLICY: _Drawn = {
    "tools": _classes,
    "rules": _rules,
    "hitl_tools": _one_of((NAME,), ("other",)),
    "provenance": lambda random: ProvenancePolicy(external_evidence=cast(Any, random.choice(["allow", "deny"]))),
}
_OF_STEP: _Drawn = {
    "exposure": _one_of(Exposure("fetch"), Exposure("fetch", "read_mail"), Exposure("", "read_mail")),
    "derived_from": _one_of("external_evidence", "integration_signal"),
    "standing": _rules,
    "revoked": _one_of(("r1",)),
    "seconds": _one_of(20),
    "lock_is_held": _one_of(True),
}
_OF_CASE: _Drawn = {
    "wish": _one_of("always", "by argument", "raises"),
    "looks_at_call": _one_of(True),
    "confinement": _one_of(Confinement(mode="not_enforced", cwd="/srv"), Confinement(mode="landlock", cwd="/srv")),
    "hook": _one_of("silent", "allow", "ask", "deny", "rewrite", "raises"),
    "hook_on_ask": _one_of(True),
    "injected": _one_of(True),
    "other": lambda random: GatePolicy(tools=default_policy("library"), rules=_rules(random)),
}
_ARGUMENTS: tuple[dict[str, Any] | None, ...] = (
    *({"text": "a"}, {"text": STRICT}, {"text": "é" * 9, "count": 3}, {"text": "a", "password": "p" * 12}),
    *({"text": "a", "why": "because"}, {"text": STRICT, "why": "because"}),
    *(None, {}, {"text": 3}, {"text": "a", "more": 1}),
)


def made_up(seed: int) -> Case:
    """A gate in which a few things are not plain, of whatever there is."""
    random = Random(seed)
    names = sorted({*_OF_TOOL, *_OF_POLICY, *_OF_CASE, *_OF_STEP})
    chosen = set(random.sample(names, random.randint(0, 5)))

    def drawn(of: _Drawn) -> dict[str, Any]:
        return {name: of[name](random) for name in sorted(chosen) if name in of}

    tool = {"effect": "pure", **drawn(_OF_TOOL)}
    policy = {"tools": default_policy("library"), **drawn(_OF_POLICY)}
    steps = [
        Step(random.choice(_ARGUMENTS), **(drawn(_OF_STEP) if random.random() < 0.6 else {}))
        for _ in range(random.randint(1, 4))
    ]
    declared = ToolDeclaration(name=NAME, input_schema=SCHEMA, **cast(Any, tool))
    return Case(declared, GatePolicy(**cast(Any, policy)), tuple(steps), **drawn(_OF_CASE))
