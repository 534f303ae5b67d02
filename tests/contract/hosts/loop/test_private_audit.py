"""What audits need of a citation is told the host's sink alone; everybody else gets what is safe."""

from typing import Any

import pytest

from kit.hosts.loop_host import Host, calling, search
from wakeful.contracts.principals import ExecutionPrincipal

WHO = ExecutionPrincipal.runtime(
    "box-7", "helper", owner_key="owner-key-1", audience_claims={"runtime_type": "claim-secret"}
)
CITED = {
    "source": "wiki",
    "access_status": "partial",
    "owner_key": "owner-key-1",
    "request_metadata": {"ip": "10.0.0.9"},
    "principal": WHO.model_dump(mode="json"),
}
HIDDEN = ("owner-key-1", "claim-secret", "10.0.0.9")


def cited(host: Host) -> Host:
    host.answers["x"] = {"success": True, "result": 1, "metadata": {"citations": [CITED], "cost": 2}}
    return host


@pytest.mark.spec("API-CIT-05")
async def test_private_details_go_to_the_audit_record_and_safe_ones_to_everybody() -> None:
    kept: list[dict[str, Any]] = []
    host = cited(Host(calling(search("x", id="c1")), {"content": "done"}))
    result = await host.mediated(
        loop={"private_audit": kept.append}, request={"messages": [], "principal": WHO.model_dump(mode="json")}
    )
    assert kept == [
        {
            "schema_version": 1,
            "type": "tool_call_private",
            "turn_count": 1,
            "tool_name": "ability/search",
            "tool_call_id": "c1",
            "principal": WHO.model_dump(mode="json"),
            "citations": [CITED],
        }
    ]
    assert all(secret in repr(kept) for secret in HIDDEN)
    (entry,) = result.tool_execution_results
    (shown,) = entry["result"]["metadata"]["citations"]
    safe = {key: value for key, value in WHO.to_safe_metadata().items() if key in CITED["principal"]}
    assert shown == {"source": "wiki", "access_status": "partial", "principal": safe}
    visible = (result.to_wire(), host.told, host.seen, [entry.fact for entry in await host.log()])
    assert not [secret for secret in HIDDEN if secret in repr(visible)]


async def test_without_a_sink_nothing_is_kept_and_one_that_raises_changes_nothing() -> None:
    def full(record: Any) -> None:
        raise OSError("full")

    results = []
    for options in ({}, {"loop": {"private_audit": full}}):
        host = cited(Host(calling(search("x", id="c1")), {"content": "done"}))
        results.append((await host.mediated(**options)).tool_execution_results)
    assert results[0] == results[1]
    assert host.payloads("observer_failed") == [{"surface": "private_audit", "error": "OSError: full"}]
