"""Ceilings: they take away, and one that cannot be read permits nothing."""

from typing import Any

import pytest

from wakeful.contracts.policies import CapabilityCeiling
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.decisions.policy.ceilings import ceiling_of, ceiling_verdict, is_autonomous, permits, read_ceiling


def principal(**fields: Any) -> ExecutionPrincipal:
    return ExecutionPrincipal(**{"effective_agent_id": "a", "auth_source": "user", "request_context": "chat", **fields})


def test_a_capability_must_be_permitted_and_not_denied() -> None:
    ceiling = CapabilityCeiling(allowed=("posts.*", "read"), denied=("posts.delete",))
    wanted = ("posts.edit", "read", "posts.delete", "users.edit", "", "  ")
    assert [permits(ceiling, one) for one in wanted] == [True, True, False, False, True, True]
    assert permits(None, "anything")
    assert permits(CapabilityCeiling(denied=("x",)), "y")


def test_a_call_above_the_ceiling_is_told_so() -> None:
    verdict = ceiling_verdict(CapabilityCeiling(allowed=()), "shop/refund", "money.move")
    assert verdict is not None
    assert (verdict.decision, verdict.source, verdict.error_type) == ("deny", "host_policy", "capability_denied")
    assert "'money.move'" in verdict.reason
    assert ceiling_verdict(CapabilityCeiling(allowed=("money.*",)), "shop/refund", "money.move") is None


@pytest.mark.parametrize("raw", [{"allow": ["x"]}, {"allowed": "x"}, {"denied": None, "more": 1}])
def test_a_ceiling_that_cannot_be_read_permits_nothing(raw: dict[str, Any]) -> None:
    assert not permits(read_ceiling(raw), "x")
    assert permits(read_ceiling({"allowed": ["x"]}), "x")


def test_who_is_autonomous_can_be_widened_and_not_narrowed() -> None:
    for source in ("system", "runtime", "agent_token"):
        assert is_autonomous(principal(auth_source=source), also=())
    assert not is_autonomous(principal())
    assert is_autonomous(principal(auth_source="webhook"), also=["webhook"])


@pytest.mark.spec("API-PRI-10")
def test_without_a_ceiling_of_its_host_an_autonomous_principal_may_not_write() -> None:
    ceiling = ceiling_of(principal(auth_source="system"))
    writing = (
        *("create_posts", "edit_posts", "publish_posts", "delete_posts", "posts.create", "posts.edit"),
        *("posts/publish", "posts:delete", "upload_files", "media.upload", "manage_settings", "settings.change"),
        *("install_extensions", "extensions.install", "enable_extensions", "extensions.enable"),
        *("manage_users", "users.remove", "promote_user"),
    )
    assert [one for one in writing if permits(ceiling, one)] == []
    assert all(permits(ceiling, one) for one in ("read", "posts.read", "search", "reports.list"))
    # A person's run has none; what the host says explicitly is used as it is.
    assert ceiling_of(principal(acting_user_id="ann")) is None
    explicit = principal(auth_source="system", capability_ceiling={"allowed": ["edit_posts"]})
    assert ceiling_of(explicit) == CapabilityCeiling(allowed=("edit_posts",))
    assert permits(ceiling_of(explicit), "edit_posts")
