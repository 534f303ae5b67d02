"""Messages through the loop: what a host may pass in, what its turn runner is shown, and what is refused by name."""

from typing import Any

import pytest

from kit.hosts.loop_host import Host, calling, search
from wakeful.contracts.errors import InvalidValue
from wakeful.hosts import ConversationLoop, merge_same_role

KINDS = (
    *("text", "input_required", "approval_required", "final_result"),
    *("error", "delta", "multimodal_part"),
)
DONE = {"content": "done"}


async def shown(*messages: Any) -> list[dict[str, Any]]:
    """The transcript as the turn runner of a run gets it."""
    host = Host(DONE)
    await ConversationLoop(store=host.store).run(messages, host.turn_runner)
    return host.wire


async def refusal(*messages: Any) -> InvalidValue:
    with pytest.raises(InvalidValue) as refused:
        await shown(*messages)
    return refused.value


@pytest.mark.spec("API-MSG-02", "API-MSG-07")
async def test_a_run_takes_the_known_types_of_version_1_and_names_the_field_of_what_it_refuses() -> None:
    for kind in KINDS:
        assert [each["type"] for each in await shown({"type": kind, "role": "user", "content": "x"})] == [kind]
    for raw, field in (
        ({"type": "banner", "content": ""}, "type"),
        ({"version": 2, "type": "text", "content": ""}, "version"),
        ({"schema": "other.message", "type": "text", "content": ""}, "schema"),
    ):
        refused = await refusal({"role": "user", "content": "x"}, raw)
        assert str(refused).startswith("invalid_message_envelope")
        assert field in refused.path


@pytest.mark.spec("API-MSG-03", "API-MSG-04")
async def test_a_plain_message_gets_its_type_from_what_it_is_and_its_role_from_its_type() -> None:
    plain: list[dict[str, Any]] = [
        {"role": "user", "content": "hello"},
        {"role": "user", "content": "x", "metadata": {"type": "final_result"}},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "user", "content": "x", "metadata": {"error": "lost"}},
        {"role": "user", "content": "x", "metadata": {"type": "banner"}},
    ]
    types = [each["type"] for each in await shown(*plain)]
    assert types == ["text", "final_result", "multimodal_part", "error", "text"]
    without = [{"type": kind, "content": "x"} for kind in ("text", "input_required", "approval_required", "error")]
    assert [each["role"] for each in await shown(*without)] == ["assistant", "tool", "tool", "assistant"]
    assert "role" in (await refusal({"role": "", "content": "x"})).path


@pytest.mark.spec("API-MSG-05", "API-MSG-06")
async def test_a_call_and_its_result_have_their_roles_and_share_an_id() -> None:
    host = Host(calling(search("gold", id="c1")), DONE)
    result = await host.mediated()
    asked, told = (message.to_wire() for message in result.messages[1:3])
    assert (asked["type"], asked["role"]) == ("tool_call", "assistant")
    assert (told["type"], told["role"]) == ("tool_result", "tool")
    assert asked["payload"] == {"tool_name": "ability/search", "parameters": {"q": "gold"}, "turn": 1}
    assert (told["payload"]["tool_name"], told["payload"]["success"]) == ("ability/search", True)
    assert asked["metadata"]["tool_call_id"] == told["metadata"]["tool_call_id"] == "c1"


@pytest.mark.spec("API-MSG-08", "API-MSG-09")
async def test_messages_of_one_role_may_be_merged_for_a_provider_and_the_transcript_stays() -> None:
    host = Host(calling(search("gold", id="c1"), content="I look."), DONE)
    result = await host.mediated([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}])
    before = [message.to_wire() for message in result.messages]
    merged = merge_same_role(result.messages)
    assert [message.role for message in merged] == ["user", "assistant", "tool", "assistant"]
    first = merged[0]
    assert (first.type, first.content) == ("multimodal_part", "one\n\ntwo")
    assert first.payload["parts"] == before[:2]
    assert merge_same_role(merged) == merged
    assert [message.to_wire() for message in result.messages] == before
    # As a provider's message: nothing of type and payload is lost.
    provider = result.messages[3].to_provider()
    assert (provider["role"], provider["content"]) == (result.messages[3].role, result.messages[3].content)
    assert provider["metadata"]["type"] == "tool_call"
    assert provider["metadata"]["payload"]["tool_name"] == "ability/search"
