"""Which tools may run inside a runtime, and how far a host may change that."""

import copy
from typing import Any

import pytest

from wakeful.hosts.tools.declaration_reader import normalize_for_server
from wakeful.hosts.tools.runtime_policy import held, projected, runtime_local_declarations, runtime_tool_policy
from wakeful.hosts.tools.tool_declaration import RuntimeToolDeclaration
from wakeful.service.hooks import HookRegistry

LOCAL = {"environment": "runtime_local", "capability_scope": "runtime_local"}


def tool(name: str, runtime: dict[str, Any] | None = None, **more: Any) -> RuntimeToolDeclaration:
    return normalize_for_server(
        {"name": name, "source": "abilities", "description": "d", "runtime": runtime or {}, **more}
    )


READ, DEPLOY = tool("files/read-all", LOCAL), tool("repo/deploy", {"environment": "runtime_local"})


@pytest.mark.spec("API-RTP-01", "API-RTP-02", "API-RTP-03", "API-RTP-05")
def test_the_projection_says_of_each_tool_where_it_belongs() -> None:
    assert projected([READ, DEPLOY], {"run": "r1"}) == {
        "schema": "wakeful/runtime-tool-policy/v1",
        "version": 1,
        "tools": [
            {
                "id": "files/read-all",
                "runtime_tool_id": "files_read_all",
                "allowed": True,
                "environment": "runtime_local",
                "capability_scope": "runtime_local",
                "runtime": {"environment": "runtime_local", "capability_scope": "runtime_local"},
                "source": "abilities",
            },
            {
                "id": "repo/deploy",
                "runtime_tool_id": "repo_deploy",
                "allowed": False,
                "environment": "runtime_local",
                "capability_scope": "control_plane",
                "runtime": {"environment": "runtime_local", "capability_scope": "control_plane"},
                "source": "abilities",
            },
        ],
        "context": {"run": "r1"},
    }
    for runtime in ({}, {"capability_scope": "runtime_local"}, {**LOCAL, "environment": "somewhere"}):
        (entry,) = projected([tool("a/b", runtime)])["tools"]
        assert entry["allowed"] is False


@pytest.mark.spec("API-RTP-04")
def test_a_declared_id_is_kept_and_of_the_context_scalars() -> None:
    (entry,) = projected([tool("a/b-c", LOCAL, runtime_tool_id="own-id")])["tools"]
    assert entry["runtime_tool_id"] == "own-id"
    context = {"a": 1, "b": "x", "c": True, "d": [1], "e": {"x": 1}, "f": None, 3: "x"}
    assert projected([], context)["context"] == {"a": 1, "b": "x", "c": True}
    assert "context" not in projected([], {"d": [1]})
    assert "context" not in projected([])


@pytest.mark.spec("API-RTM-04")
async def test_control_plane_tools_are_absent_from_what_a_runtime_is_offered() -> None:
    hooks = HookRegistry(find=list)
    assert (READ.runtime["capability_scope"], READ.runtime["environment"]) == ("runtime_local", "runtime_local")
    (entry,) = projected([READ])["tools"]
    assert (entry["capability_scope"], entry["environment"]) == ("runtime_local", "runtime_local")
    control = [
        tool(f"control/{name}", dict.fromkeys(LOCAL, "control_plane"))
        for name in ("repository_merge", "deploy", "approve", "tell_parent")
    ]
    for entry in projected(control)["tools"]:
        assert (entry["capability_scope"], entry["environment"], entry["allowed"]) == (
            "control_plane",
            "control_plane",
            False,
        )
    assert await runtime_local_declarations([*control, READ, DEPLOY], hooks=hooks) == (READ,)
    # No hook brings one of them in; one that raises lets nothing in.
    remove = hooks.register("runtime_tool_policy", loosened)
    assert await runtime_local_declarations([*control, READ, DEPLOY], hooks=hooks) == (READ,)
    remove()
    hooks.register("runtime_tool_policy", lambda *_: 1 / 0)
    assert await runtime_local_declarations([*control, READ, DEPLOY], hooks=hooks) == ()


def loosened(envelope: dict[str, Any], tools: Any, context: Any) -> dict[str, Any]:
    for entry in envelope["tools"]:
        entry.update(LOCAL, allowed=True, runtime=dict(LOCAL))
    envelope["tools"].append({"id": "repo/merge", "allowed": True, **LOCAL, "runtime": dict(LOCAL)})
    return envelope


@pytest.mark.spec("API-RTP-06")
async def test_a_hook_may_tighten_and_cannot_let_a_control_plane_tool_in() -> None:
    hooks = HookRegistry(find=list)
    remove = hooks.register("runtime_tool_policy", loosened)
    envelope = await runtime_tool_policy([READ, DEPLOY], hooks=hooks)
    assert {entry["id"]: entry["allowed"] for entry in envelope["tools"]} == {
        "files/read-all": True,
        "repo/deploy": False,
    }
    assert envelope["tools"][1]["capability_scope"] == "control_plane"
    assert envelope["tools"][1]["runtime"]["capability_scope"] == "control_plane"
    remove()

    def tightened(envelope: dict[str, Any], tools: Any, context: Any) -> dict[str, Any]:
        envelope["tools"][0]["allowed"] = False
        envelope["context"] = {"checked": True}
        return envelope

    remove = hooks.register("runtime_tool_policy", tightened)
    envelope = await runtime_tool_policy([READ], {"run": "r"}, hooks=hooks)
    assert (envelope["tools"][0]["allowed"], envelope["context"]) == (False, {"checked": True})
    remove()

    def broken(*_: Any) -> Any:
        raise ValueError("mine")

    for hook in (broken, lambda *_: None, lambda *_: {"tools": "all"}):
        remove = hooks.register("runtime_tool_policy", hook)
        envelope = await runtime_tool_policy([READ], hooks=hooks)
        assert [entry["allowed"] for entry in envelope["tools"]] == [False]
        remove()
    assert (await runtime_tool_policy([READ], hooks=hooks))["tools"][0]["allowed"] is True


def test_inversion_without_being_held_the_hook_would_let_it_in() -> None:
    """Taken out: the hook's own answer allows the tool that `held` keeps out."""
    projection = projected([DEPLOY])
    answer = loosened(copy.deepcopy(projection), None, None)
    assert [entry["allowed"] for entry in answer["tools"]] == [True, True]
    assert [entry["allowed"] for entry in held(projection, answer)["tools"]] == [False]


def test_a_nested_field_that_is_stricter_counts() -> None:
    projection = projected([READ])
    answer = copy.deepcopy(projection)
    answer["tools"][0]["runtime"]["environment"] = "control_plane"
    (entry,) = held(projection, answer)["tools"]
    assert (entry["environment"], entry["runtime"]["environment"], entry["allowed"]) == (
        "control_plane",
        "control_plane",
        False,
    )
