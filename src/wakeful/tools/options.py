"""What `@tool(...)` may say about a function, checked once, when it says it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, get_args

from wakeful.contracts.bindings import Binding, read_binding
from wakeful.contracts.errors import InvalidConfig, InvalidValue
from wakeful.contracts.tools import DuplicatePolicy, Effect, InterruptBehavior, OnFailure, PermissionClass
from wakeful.tools.proposal import ProposedCall

_BIND_HINT = 'name a place in the run\'s context, for example bind={"customer": "context.customer_id"}'


class ToolOptions(TypedDict, total=False):
    """The keywords of `tool`, for type checkers; the function itself says their defaults."""

    effect: Effect
    name: str | None
    description: str | None
    approval: bool | Callable[[ProposedCall], bool | str]
    approval_expires: float | None
    timeout: float | None
    retries: int
    locks: Sequence[str]
    reads_private: bool
    changes_state: bool | None
    leaves_machine: bool
    untrusted: bool | None
    content: Sequence[str]
    external: bool
    child_safe: bool
    bind: Mapping[str, str]
    permission_class: PermissionClass | None
    interrupt_behavior: InterruptBehavior
    on_failure: OnFailure
    duplicate_policy: DuplicatePolicy | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedOptions:
    """Options that hold together. Raises InvalidConfig, naming the one that does not."""

    effect: Effect
    name: str | None
    description: str | None
    timeout: float | None
    retries: int
    locks: tuple[str, ...]
    reads_private: bool
    changes_state: bool | None
    leaves_machine: bool
    child_safe: bool
    bind: dict[str, Binding] = field(default_factory=dict)
    approval: bool | Callable[[ProposedCall], bool | str] = False
    approval_expires: float | None = None
    untrusted: bool | None = None
    content: tuple[str, ...] = ()
    external: bool = False
    permission_class: PermissionClass | None = None
    interrupt_behavior: InterruptBehavior = "cancel"
    on_failure: OnFailure = "ignore"
    duplicate_policy: DuplicatePolicy | None = None

    def __post_init__(self) -> None:
        if self.effect not in get_args(Effect):
            known = ", ".join(get_args(Effect))
            raise InvalidConfig(f"tool(effect={self.effect!r}): no such effect", f"give one of: {known}")
        if self.timeout is not None and not (_is_number(self.timeout) and 0 < self.timeout < math.inf):
            raise InvalidConfig(f"tool(timeout={self.timeout!r}): a timeout is a positive number of seconds, or None")
        if not _is_count(self.retries):
            raise InvalidConfig(f"tool(retries={self.retries!r}): give a whole number, 0 or more")
        if not isinstance(self.approval, bool) and not callable(self.approval):
            raise InvalidConfig(
                f"tool(approval={self.approval!r}): give True, False, or a function of the call",
                'for example approval=lambda call: call.arguments["cents"] > 1_000',
            )
        expires = self.approval_expires
        if expires is not None and not (_is_number(expires) and 0 < expires < math.inf):
            raise InvalidConfig(f"tool(approval_expires={expires!r}): give a positive number of seconds, or None")
        if self.untrusted not in (None, True, False):
            raise InvalidConfig(f"tool(untrusted={self.untrusted!r}): give True or False, or leave it out")
        if self.changes_state and self.effect == "pure":
            raise InvalidConfig('tool(effect="pure", changes_state=True): a pure tool changes nothing')
        for option, kind in (("interrupt_behavior", InterruptBehavior), ("on_failure", OnFailure)):
            if getattr(self, option) not in get_args(kind):
                raise InvalidConfig(
                    f"tool({option}={getattr(self, option)!r}): not a known value",
                    f"give one of: {', '.join(get_args(kind))}",
                )
        if self.duplicate_policy not in (None, *get_args(DuplicatePolicy)):
            raise InvalidConfig(
                f"tool(duplicate_policy={self.duplicate_policy!r}): not a known value",
                'give "repeatable", or leave it out',
            )
        self._check_class()
        if self.external:
            self._check_external()

    @property
    def writes(self) -> bool:
        """Does it change anything?"""
        return self.effect != "pure" if self.changes_state is None else self.changes_state

    def _check_class(self) -> None:
        """One class, of those there are, and none that the other flags speak against."""
        named = self.permission_class
        if named is None:
            return
        if named not in get_args(PermissionClass):
            known = ", ".join(get_args(PermissionClass))
            raise InvalidConfig(f"tool(permission_class={named!r}): no such class", f"give one of: {known}")
        if (named == "safe" and (self.writes or self.leaves_machine)) or (named == "network" and self.writes):
            raise InvalidConfig(
                f"tool(permission_class={named!r}): such a tool only reads"
                + (", and nothing of it leaves the machine" if named == "safe" else ""),
                'say effect="pure", or give the class of what it does: workspace_write, external_write, ...',
            )

    def _check_external(self) -> None:
        """What only code of this process could keep is not promised for a client."""
        if self.effect == "probeable":
            raise InvalidConfig(
                'tool(external=True, effect="probeable"): nobody here can ask a client whether it did something',
                'say "irreversible", "keyed" or "pure"',
            )
        if self.locks:
            raise InvalidConfig(f"tool(external=True, locks={list(self.locks)!r}): a client holds no locks of this run")
        if self.bind:
            raise InvalidConfig(
                f"tool(external=True, bind=...): {', '.join(self.bind)} would come from this run's context",
                "a client is sent what the model wrote; let the client fill it in itself",
            )


def content_names(content: Sequence[str]) -> tuple[str, ...]:
    """The parameters that hold free text. A bare string would name each of its letters."""
    names: tuple[Any, ...] = (content,) if isinstance(content, str) else tuple(content)
    if isinstance(content, str) or not all(isinstance(name, str) and name for name in names):
        raise InvalidConfig(
            f"tool(content={content!r}): give a list of parameters", 'for example content=("subject", "body")'
        )
    return names


def check_content(tool: str, schema: Mapping[str, Any], content: tuple[str, ...]) -> tuple[str, ...]:
    """The same names, when the schema has a parameter for each. Raises InvalidConfig."""
    properties = schema.get("properties")
    known = list(properties) if isinstance(properties, Mapping) else []
    for path in content:
        if path.partition(".")[0] not in known:
            raise InvalidConfig(
                f"{tool} has no parameter {path!r} that could be free text (content)",
                f"it has: {', '.join(sorted(known)) or 'none'}",
            )
    return content


def lock_names(locks: Sequence[str]) -> tuple[str, ...]:
    """The names to lock. A bare string would be one lock for each of its letters."""
    names: tuple[Any, ...] = (locks,) if isinstance(locks, str) else tuple(locks)
    if isinstance(locks, str) or not all(isinstance(name, str) and name for name in names):
        raise InvalidConfig(f"tool(locks={locks!r}): give a list of names", 'for example locks=["ledger"]')
    return names


def bindings(bind: Mapping[Any, Any]) -> dict[str, Binding]:
    """Parameters that come from the run. Raises InvalidConfig, naming the parameter."""
    if not isinstance(bind, Mapping):
        raise InvalidConfig(f"tool(bind={bind!r}): give a dict", _BIND_HINT)
    read: dict[str, Binding] = {}
    for name, place in bind.items():
        try:
            binding = read_binding(place) if isinstance(place, str) else None
        except InvalidValue:
            binding = None
        if binding is None or binding.source != "context" or not isinstance(name, str):
            raise InvalidConfig(f"tool(bind=...): {name!r} cannot be taken from {place!r}", _BIND_HINT)
        read[name] = binding.model_copy(update={"authoritative": True})
    return read


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
