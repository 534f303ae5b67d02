"""Who asks, who may see and steer runs that were handed to an executor or a host, and how much of them they see.

Who calls is what the host attests. Only a principal that a ceiling names may manage runs or read secrets. Without a
ceiling, nobody may.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from wakeful.contracts.errors import ForTheCaller, InvalidValue
from wakeful.contracts.principals import INVALID, ExecutionPrincipal
from wakeful.decisions.redaction import redact
from wakeful.hosts.dispatch.dispatch_request import RunOwner
from wakeful.service.hooks import HookRegistry
from wakeful.service.hooks import hooks as default_hooks

MANAGE = "manage_runs"
"""The capability of a manager."""
UNREDACTED = "read_runs_unredacted"
"""The capability of those who are shown sensitive values."""
Grant: TypeAlias = Callable[[ExecutionPrincipal], bool]


class RunRefused(ForTheCaller):
    """It was not carried out, or failed; `code` says at which step."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(f"{code}: {message}", hint)
        self.code = code
        self.reason = message


def granted(capability: str) -> Grant:
    """Is it named in the caller's ceiling?"""

    def holds(caller: ExecutionPrincipal) -> bool:
        ceiling = caller.capability_ceiling
        return ceiling is not None and ceiling.allowed is not None and ceiling.permits(capability)

    return holds


_manages, _reads_unredacted = granted(MANAGE), granted(UNREDACTED)


@dataclass(frozen=True, slots=True)
class RunAccess:
    """A host's word on who may what."""

    is_manager: Grant = _manages
    reads_unredacted: Grant = _reads_unredacted

    def manages(self, caller: ExecutionPrincipal | None) -> bool:
        return caller is not None and self.is_manager(caller)

    def may_see(self, caller: ExecutionPrincipal | None, owner: RunOwner | None) -> bool:
        """The owner, or a manager. A run of nobody is a manager's alone."""
        return self.manages(caller) or (owner is not None and owner_of(caller) == owner)

    def shown(self, payload: dict[str, Any], caller: ExecutionPrincipal | None) -> dict[str, Any]:
        """The payload as this reader gets it."""
        if caller is not None and self.reads_unredacted(caller):
            return payload
        safe: dict[str, Any] = redact(payload)
        return safe


async def resolve_principal(
    request_context: Mapping[str, Any],
    *,
    hooks: HookRegistry = default_hooks,
    auth_sources: Collection[str] = (),
) -> ExecutionPrincipal | None:
    """The principal the host names, or None. Raises InvalidValue for an answer that is none."""
    found = await hooks.resolve("execution_principal", dict(request_context))
    if found is None:
        return None
    if not isinstance(found, ExecutionPrincipal | dict):
        raise InvalidValue(
            INVALID,
            "",
            f"the hook 'execution_principal' answered a {type(found).__name__}",
            "answer a principal or None",
        )
    return ExecutionPrincipal.normalise(found, auth_sources=auth_sources)


def owner_of(caller: ExecutionPrincipal | None) -> RunOwner | None:
    """Whose a run is that this caller starts."""
    owner = caller.conversation_owner() if caller is not None else None
    return RunOwner(type=owner.type, key=owner.key) if owner is not None else None


def principal_id(owner: RunOwner | None) -> str | None:
    """The owner as turns know it."""
    return known_as(owner.type, owner.key) if owner is not None else None


def known_as(kind: str, key: str) -> str:
    """A user by its key, anybody else with what it is. No two owners are known as one."""
    if kind == "user" and ":" not in key:
        return key
    return f"{kind.replace(':', '%3A')}:{key}"


def failure_of(error: BaseException, otherwise: str) -> tuple[str, str]:
    """The code and the words of an error, for diagnostics."""
    code = getattr(error, "code", None)
    said = getattr(error, "reason", None) or getattr(error, "message", None) or str(error) or type(error).__name__
    return (code if isinstance(code, str) and code else otherwise), str(said)
