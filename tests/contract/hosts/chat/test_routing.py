"""Where a chat message goes."""

from typing import Any

import pytest

from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.policy.permissions import default_policy
from wakeful.hosts.chat import ChatContext, NotRouted, ToChat, ToWorkflow, compose_toolbelt, route
from wakeful.views.wire_messages import WIRE_MESSAGE

EDITOR = {"kind": "editor", "workflow_id": "wf_1"}
CHAT = ToChat(ChatContext("thread"))
WORKFLOW = {"workflow_target": "workflow", "workflow_id": "wf_1"}
MEDIA = {"media_generation": {"mode": "image"}}


def error_of(message: dict[str, Any]) -> str | None:
    routed = route(message)
    return routed.error if isinstance(routed, NotRouted) else None


@pytest.mark.spec("LOOP-ROUTE-01")
def test_the_order_is_a_workflow_then_media_then_chat() -> None:
    assert route({"content": "hi"}) == CHAT
    assert route(WORKFLOW) == ToWorkflow("wf_1")
    assert route({**WORKFLOW, **MEDIA}) == ToWorkflow("wf_1"), "first the workflow"
    assert error_of(MEDIA) == "unsupported_route"
    assert error_of({**MEDIA, "chat_context": EDITOR}) == "unsupported_route", "then media"
    assert route({"media_generation": {"mode": "chat"}}) == CHAT
    assert route({"media_generation": {}}) == route({"media_generation": None}) == CHAT
    assert route({"workflow_target": "something"}) == CHAT, "everything else is chat"


def declared(name: str) -> ToolDeclaration:
    return ToolDeclaration(
        name=name,
        input_schema={},
        effect="pure",
        permission_class="safe" if name == "search" else "editor_mutate",
    )


def belt(message: dict[str, Any]) -> list[str]:
    """The tools of the turn that a message begins, where everything is there that a tool may need."""
    routed = route(message)
    assert isinstance(routed, ToChat)
    kind = routed.context.kind
    tools = compose_toolbelt(
        chat_context=message.get("chat_context"),
        registry=object(),
        providers=[declared(name) for name in ("search", "build_workflow", "ui_select")],
        memory_enabled=False,
        client_tools_manifest=[],
        tool_bridge=object(),
        send_message=object(),
        policy=default_policy(kind),
        declared=lambda tool: tool,
    )
    return [tool.name for tool in tools]


@pytest.mark.spec("LOOP-ROUTE-02")
def test_the_context_is_a_field_of_its_own_and_decides_about_the_editors_tools() -> None:
    assert route({"chat_context": {"kind": "thread"}}) == CHAT
    assert route({"chat_context": EDITOR}) == ToChat(ChatContext("editor", "wf_1"))
    assert belt({"chat_context": {"kind": "thread"}}) == ["search"]
    assert belt({"chat_context": EDITOR}) == ["search", "build_workflow", "ui_select"]
    assert belt({}) == belt({"chat_context": None}) == ["search"], "left out means thread"


@pytest.mark.spec("LOOP-ROUTE-03")
def test_a_workflow_id_alone_selects_nothing() -> None:
    assert route({"workflow_id": "wf_1"}) == CHAT
    assert route({"workflow_id": "wf_1", "chat_context": {"kind": "thread"}}) == CHAT
    assert route({"workflow_id": "wf_1", "workflow_target": "workflow"}) == ToWorkflow("wf_1")
    assert route({"chat_context": EDITOR}) == ToChat(ChatContext("editor", "wf_1"))
    assert route({"chat_context": {"kind": "editor", "workflow_id": "wf_2"}, "workflow_id": "wf_1"}) == ToChat(
        ChatContext("editor", "wf_2")
    )
    assert error_of({"workflow_target": "workflow"}) == "invalid_workflow_target"


@pytest.mark.spec("LOOP-ROUTE-06", "LOOP-ROUTE-07")
@pytest.mark.parametrize("name", ["tools", "agent_mode", "user_id"])
@pytest.mark.parametrize("message", [{}, {"chat_context": EDITOR}, WORKFLOW])
def test_a_field_that_changes_nothing_is_named_and_ignored(name: str, message: dict[str, Any]) -> None:
    plain, given = route(message), route({**message, name: ["x"]})
    assert isinstance(plain, ToChat | ToWorkflow)
    assert given == plain._replace(ignored=(name,))


@pytest.mark.spec("LOOP-ROUTE-08")
def test_a_client_that_knows_no_chat_context_gets_a_thread() -> None:
    assert route({"content": "hi"}) == route({"content": "hi", "chat_context": {"kind": "thread"}}) == CHAT
    assert route({"chat_context": None}) == CHAT
    # And what it is sent can be read without the fields that say where in the tree it belongs.
    flat = {"type": "chunk", "content": "Hi", "thread_id": "main", "turn_id": "turn_1"}
    assert WIRE_MESSAGE.validate_python(flat).type == "chunk"


@pytest.mark.spec("LOOP-ROUTE-09")
@pytest.mark.parametrize("mode", ["image", "video", "", "Chat", 1])
def test_media_are_answered_with_an_error_and_not_with_a_chat(mode: Any) -> None:
    routed = route({"content": "a cat", "media_generation": {"mode": mode}})
    assert isinstance(routed, NotRouted)
    assert (routed.error, repr(mode) in routed.message) == ("unsupported_route", True)


@pytest.mark.spec("LOOP-ROUTE-10")
@pytest.mark.parametrize(
    "context",
    [
        {"kind": "sidebar"},
        {"kind": "Editor", "workflow_id": "wf_1"},
        {"workflow_id": "wf_1"},
        {"kind": "editor"},
        {"kind": "editor", "workflow_id": ""},
        {"kind": "editor", "workflow_id": 7},
        {},
        "editor",
        ["editor"],
    ],
)
def test_a_context_that_cannot_be_read_is_refused_and_becomes_no_other(context: Any) -> None:
    routed = route({"content": "hi", "workflow_id": "wf_1", "chat_context": context})
    assert isinstance(routed, NotRouted)
    assert routed.error == "invalid_chat_context"
    assert routed.message
    assert routed.hint
