"""Abilities: named operations that hosts, tools and clients dispatch. Every call goes the same way, in this order:

1. `ability_invoked` observers      hear of every call, also of those that are refused later
2. the gate                         an approval that is needed stands in the result's place, and nothing runs
3. the input                        must fit its schema
4. permission                       a check that raises has not permitted
5. execution
6. `ability_executed` observers     hear the result and cannot change it

An author opts in to nothing: whoever registers an ability gets all of it.

`AbilityExecutor` has the calls of a host's tools run by abilities: `ability` of a declaration names the one.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from wakeful.contracts.errors import ForTheCaller, InvalidConfig, InvalidValue
from wakeful.engine.run_request import Engine
from wakeful.gate.argument_validation import Validator
from wakeful.hosts.actions.pending_action import PendingAction, approval_envelope
from wakeful.hosts.actions.records import OwnPendingActionStore
from wakeful.hosts.host_calls import awaited
from wakeful.hosts.ports import PendingActionStore, ToolCall
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks

NAME_MISSING = "ability_name_missing"
NOT_FOUND = "ability_not_found"
GATE_FAILED = "ability_gate_failed"
INVALID_INPUT = "ability_invalid_input"
PERMISSION_DENIED = "ability_permission_denied"
ENVELOPE_ONLY = ("instruction", "grants")
"""Fields of a decision that belong to the envelope, not to the action."""
DECISION_HOOK = "ability_pre_execute_decision"
STORE_HOOK = "pending_action_store"


class AbilityRefused(ForTheCaller):
    """The call was not carried out; `code` says at which step."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(f"{code}: {message}", hint)
        self.code = code


@dataclass(frozen=True, slots=True)
class Ability:
    """One operation. Callables may be plain or async."""

    name: str
    execute: Callable[[Any], Any]
    permission: Callable[[Any], Any]
    """Gets the input; True permits, anything else does not."""
    description: str = ""
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    """The JSON Schema of the result, for callers."""
    category: str = ""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """Hints for a client before it calls: `destructive`, `idempotent`. Shown by `Abilities.described`."""

    def __deepcopy__(self, memo: Any) -> "Ability":
        return self  # it does not change, and what is behind its callables is not ours to copy


PreExecute: TypeAlias = Callable[[Any, str, Any, Ability], Any]
"""(value, ability_name, input, ability) -> value. Anything but None stands in the result's place."""


class Abilities:
    """The abilities of one host, and the one way to call them."""

    def __init__(self, hooks: HookRegistry = default_hooks, *, store: PendingActionStore | None = None) -> None:
        self._hooks = hooks
        self._store = store
        """Where actions are staged when no hook names a store."""
        self._abilities: dict[str, Ability] = {}
        self._inputs: dict[str, Validator] = {}
        self._before: list[PreExecute] = []

    @classmethod
    def on(cls, engine: Engine, hooks: HookRegistry = default_hooks) -> "Abilities":
        """Abilities whose actions are staged in wakeful's own store, unless a hook names another."""
        return cls(hooks, store=OwnPendingActionStore(engine))

    def register(self, ability: Ability) -> None:
        """Raises InvalidConfig for a name that is blank or taken, and for a schema that is none."""
        if not ability.name.strip():
            raise InvalidConfig("an ability needs a name", "for example 'agents/run_task'")
        if ability.name in self._abilities:
            raise InvalidConfig(f"the ability {ability.name!r} is registered already", "give it another name")
        if ability.input_schema is not None:
            self._inputs[ability.name] = Validator(dict(ability.input_schema))
        self._abilities[ability.name] = ability

    def before_execution(self, handler: PreExecute) -> None:
        """Add a handler that may answer in the ability's place. The approval gate comes after all of them."""
        self._before.append(handler)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._abilities)

    def get(self, name: str) -> Ability | None:
        return self._abilities.get(name)

    def described(self) -> list[dict[str, Any]]:
        """Every ability as a client reads it: what it is for, what it takes and gives, and its annotations."""
        return [
            {
                "name": each.name,
                "description": each.description,
                "category": each.category,
                "input_schema": dict(each.input_schema) if each.input_schema is not None else None,
                "output_schema": dict(each.output_schema) if each.output_schema is not None else None,
                "annotations": dict(each.annotations),
            }
            for each in self._abilities.values()
        ]

    async def call(self, name: str, given: Any = None) -> Any:
        """The ability's result, or an `approval_required` envelope in its place. Raises AbilityRefused.

        An exception of the ability is passed on: it ran, and the caller has to handle it.
        """
        ability = self._named(name)
        await self._hooks.observe("ability_invoked", ability.name, given, ability)
        instead = await self._answered_before(ability, given)
        instead = await self._gate(instead, ability, given)
        if instead is not None:
            return instead
        self._check_input(ability, given)
        await _check_permission(ability, given)
        result = await awaited(ability.execute(given))
        await self._hooks.observe("ability_executed", ability.name, result, given, ability)
        return result

    def _named(self, name: Any) -> Ability:
        if not isinstance(name, str) or not name.strip():
            raise AbilityRefused(NAME_MISSING, "no ability was named")
        ability = self._abilities.get(name)
        if ability is None:
            raise AbilityRefused(
                NOT_FOUND, f"there is no ability {name!r}", f"there are: {', '.join(self.names) or 'none'}"
            )
        return ability

    async def _answered_before(self, ability: Ability, given: Any) -> Any:
        value: Any = None
        for handler in self._before:
            try:
                answer = await awaited(handler(value, ability.name, copy.deepcopy(given), ability))
            except Exception as error:
                raise _gate_failed(ability, f"a handler before it raised {type(error).__name__}: {error}") from error
            value = answer if value is None else value
        return value

    async def _gate(self, earlier: Any, ability: Ability, given: Any) -> Any:
        """The approval gate of one call: None lets it pass."""
        if earlier is not None:
            return earlier
        try:
            decision = await self._hooks.value(
                DECISION_HOOK, None, ability.name, copy.deepcopy(given), ability, hold=_first_decision
            )
            if decision is None:
                return None
            action, extras = _action_of(decision)
        except Exception as error:
            raise _gate_failed(ability, f"{type(error).__name__}: {error}") from error
        staged = await self._staged(action)
        return approval_envelope(action, ability_name=ability.name, staged=staged, **extras).to_wire()

    def _check_input(self, ability: Ability, given: Any) -> None:
        validator = self._inputs.get(ability.name)
        violations = validator.check(given) if validator is not None else []
        if violations:
            words = "; ".join(f"{each.path or 'input'}: {each.message}" for each in violations)
            raise AbilityRefused(INVALID_INPUT, f"the input of {ability.name} does not fit its schema: {words}")

    async def _staged(self, action: PendingAction) -> bool:
        """Keep the action for whoever decides. When that fails the ability does not run all the same."""
        try:
            store = await self._hooks.resolve(STORE_HOOK)
            store = self._store if store is None else store
            if store is None:
                return False
            await awaited(store.store(action))
        except Exception:  # the envelope says that it was not staged
            return False
        return True


def _first_decision(before: Any, after: Any) -> Any:
    """A later hook may not do away with a decision that an earlier one made."""
    return after if before is None else before


def _action_of(decision: Any) -> tuple[PendingAction, dict[str, Any]]:
    """The action, and what goes into the envelope beside it. Raises for what is no decision."""
    if isinstance(decision, PendingAction):
        action, extras = decision, {}
    elif isinstance(decision, Mapping):
        extras = {name: decision[name] for name in ENVELOPE_ONLY if decision.get(name) is not None}
        action = PendingAction.normalise({name: value for name, value in decision.items() if name not in ENVELOPE_ONLY})
    else:
        raise InvalidValue(
            "invalid_pending_action", "", f"a decision is an action or None, not a {type(decision).__name__}"
        )
    if not action.is_pending:
        raise InvalidValue("invalid_pending_action", "status", f"a new action is pending, not {action.status}")
    if not isinstance(extras.get("instruction", ""), str):
        raise InvalidValue("invalid_pending_action", "instruction", "is a text")
    grants = extras.get("grants", ())
    if not isinstance(grants, list | tuple) or not all(isinstance(grant, Mapping) for grant in grants):
        raise InvalidValue("invalid_pending_action", "grants", "is a list of objects")
    return action, extras


def _gate_failed(ability: Ability, why: str) -> AbilityRefused:
    return AbilityRefused(GATE_FAILED, f"{ability.name} was not run: its permission could not be checked: {why}")


async def _check_permission(ability: Ability, given: Any) -> None:
    try:
        permitted = await awaited(ability.permission(copy.deepcopy(given)))
    except Exception as error:
        raise AbilityRefused(
            PERMISSION_DENIED, f"the permission check of {ability.name} raised {type(error).__name__}: {error}"
        ) from error
    if permitted is not True:
        raise AbilityRefused(PERMISSION_DENIED, f"{ability.name} is not permitted to the caller")


class AbilityExecutor:
    """A ToolExecutor over the abilities of one host."""

    def __init__(self, abilities: Abilities) -> None:
        self._abilities = abilities

    async def execute(self, call: ToolCall, declaration: RuntimeToolDeclaration, context: dict[str, Any]) -> object:
        """The ability's result. An exception of the ability is passed on."""
        named = (declaration.model_extra or {}).get("ability")
        try:
            result = await self._abilities.call(named if isinstance(named, str) else "", call.parameters)
        except AbilityRefused as refused:
            return {"success": False, "error": refused.message, "error_type": refused.code}
        if isinstance(result, dict) and result.get("type") == "approval_required":
            return result
        return {"success": True, "result": result}
