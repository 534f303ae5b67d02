"""Principals: identity, its owner, its ceiling, and what anybody may see of it."""

from typing import Any

import pytest
from pydantic import ValidationError

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.principals import (
    AUTONOMOUS,
    SAFE_METADATA,
    CapabilityCeiling,
    ConversationOwner,
    ExecutionPrincipal,
)
from wakeful.hosts.run_access import resolve_principal
from wakeful.service.hooks import HookRegistry

USER: dict[str, Any] = {"effective_agent_id": "helper", "auth_source": "user", "request_context": "chat"}


def principal(**fields: Any) -> ExecutionPrincipal:
    return ExecutionPrincipal.normalise({**USER, **fields})


@pytest.mark.spec("API-PRI-01")
def test_a_principal_has_its_shape_does_not_change_and_holds_no_token() -> None:
    who = principal(acting_user_id="u1")
    with pytest.raises(ValidationError):
        who.acting_user_id = "u2"  # type: ignore[misc]
    assert set(ExecutionPrincipal.model_fields) == {
        *("acting_user_id", "effective_agent_id", "auth_source", "request_context", "token_id", "request_metadata"),
        *("workspace_id", "client_id", "capability_ceiling", "caller_context", "audience_id", "audience_claims"),
        *("owner_type", "owner_key", "binding"),
    }
    for field in ("token", "access", "grants"):
        with pytest.raises(InvalidValue, match=f"^invalid_execution_principal: {field}"):
            principal(**{field: "x"})
    decides = [name for name in dir(ExecutionPrincipal) if name.startswith(("can_", "may_", "grant", "authorize"))]
    assert decides == []


@pytest.mark.spec("API-PRI-02")
@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"effective_agent_id": ""}, "effective_agent_id"),
        ({"auth_source": " "}, "auth_source"),
        ({"request_context": ""}, "request_context"),
        ({"auth_source": "somebody"}, "auth_source"),
        ({"owner_type": "team"}, "owner_key"),
        ({"owner_key": "k"}, "owner_type"),
    ],
)
def test_what_is_wrong_with_a_principal_is_named(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValue, match=r"^invalid_execution_principal: ") as caught:
        principal(**fields)
    assert field in str(caught.value)
    for source in ("user", "agent_token", "audience", "runtime", "system"):
        assert principal(auth_source=source).auth_source == source
    declared = ExecutionPrincipal.normalise({**USER, "auth_source": "kiosk"}, auth_sources=["kiosk"])
    assert declared.auth_source == "kiosk"
    assert principal(owner_type="team", owner_key="k").owner_type == "team"


@pytest.mark.spec("API-PRI-03")
def test_a_runtime_principal_is_what_the_host_attests() -> None:
    who = ExecutionPrincipal.runtime("rt-1", "helper", audience_claims={"runtime_type": "browser"})
    assert (who.auth_source, who.request_context, who.audience_id) == ("runtime", "runtime", "rt-1")
    assert (who.owner_type, who.owner_key, who.acting_user_id) == ("runtime", "rt-1", None)
    assert who.audience_claims == {"runtime_type": "browser"}
    assert ExecutionPrincipal.runtime("rt-1", "helper", owner_key="own").owner_key == "own"
    assert ExecutionPrincipal.runtime("rt-1", "helper", auth_source="user").auth_source == "runtime"


@pytest.mark.spec("API-PRI-06", "API-PRI-07")
def test_builders_and_whose_the_conversation_is() -> None:
    user = ExecutionPrincipal.user_session("u1", "helper")
    token = ExecutionPrincipal.agent_token("t1", "helper")
    audience = ExecutionPrincipal.audience("public", "helper")
    assert (user.auth_source, token.auth_source, audience.auth_source) == ("user", "agent_token", "audience")
    assert (user.acting_user_id, token.token_id, audience.audience_id) == ("u1", "t1", "public")
    assert user.conversation_owner() == ConversationOwner("user", "u1")
    assert token.conversation_owner() == ConversationOwner("token", "t1")
    assert audience.conversation_owner() is None
    assert principal().conversation_owner() is None
    explicit = ExecutionPrincipal.user_session("u1", "helper", owner_type="team", owner_key="k")
    assert explicit.conversation_owner() == ConversationOwner("team", "k")


def test_a_runtimes_owner_is_nobody_elses() -> None:
    owners = [
        ExecutionPrincipal.user_session("rt-1", "helper").conversation_owner(),
        ExecutionPrincipal.agent_token("rt-1", "helper").conversation_owner(),
        ExecutionPrincipal.runtime("rt-1", "helper").conversation_owner(),
        ExecutionPrincipal.runtime("rt-2", "helper").conversation_owner(),
    ]
    assert len(set(owners)) == 4


@pytest.mark.spec("API-PRI-08")
def test_safe_metadata_has_these_keys_and_none_of_the_rest() -> None:
    who = ExecutionPrincipal.agent_token(
        "tok-1",
        "helper",
        request_metadata={"ip": "10.0.0.1"},
        workspace_id="w",
        client_id="c",
        capability_ceiling={"denied": ["edit"]},
        caller_context={"account": "DE1"},
        audience_claims={"email": "a@b"},
        owner_type="team",
        owner_key="key-1",
        binding={"sig": "xyz"},
    )
    assert who.to_safe_metadata() == {
        "schema_version": 1,
        "effective_agent_id": "helper",
        "auth_source": "agent_token",
        "request_context": "rest",
        "acting_user_id": None,
        "workspace_id": "w",
        "client_id": "c",
        "audience_id": None,
        "owner_type": "team",
        "has_conversation_owner": True,
        "has_capability_ceiling": True,
        "has_caller_context": True,
    }
    assert tuple(who.to_safe_metadata()) == SAFE_METADATA


@pytest.mark.spec("API-PRI-09")
def test_autonomous_principals_and_a_host_that_may_only_add_to_them() -> None:
    for source in ("system", "runtime", "agent_token"):
        assert principal(auth_source=source).is_autonomous()
        assert principal(auth_source=source).is_autonomous(lambda who: False)
    for source in ("user", "audience"):
        assert not principal(auth_source=source).is_autonomous()
        assert principal(auth_source=source).is_autonomous(lambda who: True)


def test_inversion_a_host_that_were_believed_would_narrow_the_set() -> None:
    """Taken out: asking the host alone calls a system principal supervised."""
    host = {"system": False}
    assert host["system"] is False and principal(auth_source="system").auth_source in AUTONOMOUS
    assert principal(auth_source="system").is_autonomous(lambda who: host[who.auth_source])


@pytest.mark.spec("API-PRI-10")
def test_an_autonomous_principal_may_not_write_unless_its_host_set_a_ceiling() -> None:
    ceiling = principal(auth_source="system").effective_ceiling()
    assert ceiling is not None
    for capability in (
        *("create_posts", "posts.edit", "publish_pages", "delete_posts", "upload_files", "manage_settings"),
        *("install_extensions", "extension:enable", "users/create", "promote_users", "EDIT_POSTS"),
    ):
        assert not ceiling.permits(capability), capability
    for capability in ("read", "posts.read", "search_posts"):
        assert ceiling.permits(capability), capability
    own = CapabilityCeiling(allowed=("edit_posts",))
    assert principal(auth_source="system", capability_ceiling=own).effective_ceiling() is own
    assert principal().effective_ceiling() is None
    assert principal().effective_ceiling(lambda who: True) == ceiling


def test_a_ceiling_denies_before_it_allows() -> None:
    ceiling = CapabilityCeiling(allowed=("a", "b"), denied=("b",))
    assert [ceiling.permits(name) for name in ("a", "b", "c")] == [True, False, False]


async def test_the_principal_comes_from_the_hook_and_anything_else_is_an_error() -> None:
    hooks = HookRegistry(find=list)
    assert await resolve_principal({"path": "/"}, hooks=hooks) is None
    heard: list[Any] = []

    def known(found: Any, request: dict[str, Any]) -> Any:
        heard.append((found, request))
        return request.get("answer")

    hooks.register("execution_principal", known)
    assert await resolve_principal({"answer": None}, hooks=hooks) is None
    assert await resolve_principal({"answer": USER}, hooks=hooks) == principal()
    assert await resolve_principal({"answer": principal()}, hooks=hooks) == principal()
    assert heard[1] == (None, {"answer": USER})
    for wrong in ("user", ["user"], True, 7):
        with pytest.raises(
            InvalidValue, match=r"^invalid_execution_principal: the hook 'execution_principal' answered"
        ):
            await resolve_principal({"answer": wrong}, hooks=hooks)
    with pytest.raises(InvalidValue, match=r"^invalid_execution_principal: auth_source"):
        await resolve_principal({"answer": {**USER, "auth_source": "x"}}, hooks=hooks)
