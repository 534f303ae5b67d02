"""Secrets that a run was given, on every surface it can be read on: by name, by declaration, and by value.

The canaries are in the store, because recovery needs them; no reader is shown one without asking for it.
"""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from kit.runs.engine_runs import calls
from kit.runs.whole_views import run_stream, transcript
from kit.surfaces.command_line import command_line
from wakeful import Agent, RunResult, run, stream, tool
from wakeful.bootstrap.stores import opened_store
from wakeful.service.queries.turns import EventReader, find_turn, turn_events, wire
from wakeful.testing import scripted
from wakeful.views.audit_entry import audit_entry

BY_NAME = "canary/by name=7f3a%"
DECLARED = "canary-declared-55e1"
CANARIES = (BY_NAME, DECLARED)


@tool(effect="pure")
def log_in(user: str, password: str, pin: Annotated[str, Field(json_schema_extra={"x-sensitive": True})]) -> Any:
    """A careless tool: it gives back what it was given, in several spellings."""
    return {"text": f"logged in {user} with {password} and {pin}", "url": f"https://x/?p={json.dumps(password)}"}


@tool(effect="pure")
def refuse(password: str, pin: Annotated[str, Field(json_schema_extra={"x-sensitive": True})]) -> str:
    """A tool that tells too much when it fails."""
    raise ValueError(f"wrong password {password!r} and pin {pin}")


@tool
def confirm(password: str, note: str) -> str:
    """Asks a person first."""
    return "done"


GIVEN = {"password": BY_NAME, "pin": DECLARED}
SCRIPT = [
    calls(("log_in", {"user": "ann", **GIVEN}), ("refuse", GIVEN)),
    {"text": f"I logged in with {BY_NAME}.", **calls(("confirm", {"password": BY_NAME, "note": "please"}))},
    "Done.",
]


async def leaky(path: Path) -> RunResult[Any]:
    who = Agent("leaky", scripted(SCRIPT, leftover="ignore"), tools=[log_in, refuse, confirm], hitl_tools=["confirm"])
    return await run(who, f"my password is {BY_NAME}", store=path / "c.db")


def hides(shown: Any) -> bool:
    text = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
    return not any(canary in text or json.dumps(canary)[1:-1] in text for canary in CANARIES)


async def test_no_view_of_a_run_shows_a_secret_it_was_given(tmp_path: Path) -> None:
    result = await leaky(tmp_path)
    assert result.status == "approval_required"
    facts = list(result.facts())
    views = {
        "messages": [message.to_wire() for message in result.messages],
        "calls": [call.model_dump(mode="json") for call in result.calls()],
        "executions": [each.model_dump(mode="json") for each in result.tool_execution_results],
        "audit": [audit.model_dump(mode="json") for audit in result.tool_audit_events],
        "events": [event.model_dump(mode="json") for event in result.events],
        "approvals": [record.model_dump(mode="json") for record in result.approvals],
        "history": result.to_dict()["history"],
        "whole": result.to_json(),
        "transcript": [entry.model_dump(mode="json") for entry in transcript(facts)],
        "stream": [event.model_dump(mode="json") for event in run_stream(result.turn_id, facts)],
    }
    for name, shown in views.items():
        assert hides(shown), name
    async with opened_store(tmp_path / "c.db") as store:
        row = await find_turn(store, result.turn_id)
        stored = await turn_events(store, row)
        reader, open_ = EventReader(store), EventReader(store, reveal=True)
        await reader.learn(stored)
        assert hides([wire(await reader.read(fact)) for fact in stored])
        revealed = json.dumps([wire(await open_.read(fact)) for fact in stored])
    assert all(json.dumps(canary)[1:-1] in revealed for canary in CANARIES), "revealed, they are there"
    assert not hides(result.to_dict(reveal=True)["history"])


@pytest.mark.parametrize("view", ["facts", "stream", "transcript"])
async def test_the_command_shows_secrets_only_when_told_to(tmp_path: Path, view: str) -> None:
    result = await leaky(tmp_path)

    async def shown(*more: str) -> str:
        line = command_line("events", result.turn_id, "--store", str(tmp_path / "c.db"), "--as", view, *more)
        process = await asyncio.create_subprocess_exec(*line, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        assert process.returncode == 0
        return out.decode()

    for form in ((), ("--json",)):
        words = await shown(*form)
        assert "[redacted]" in words
        assert DECLARED not in words
        assert f"I logged in with {BY_NAME}" not in words
        assert f"with {BY_NAME} and" not in words
        assert f"my password is {BY_NAME}" not in words
        told = await shown(*form, "--reveal")
        assert f"I logged in with {BY_NAME}" in told or view == "facts"
        assert BY_NAME in told


async def test_a_watched_run_shows_no_secret_that_a_tool_repeats(tmp_path: Path) -> None:
    who = Agent("leaky", scripted([SCRIPT[0], "Done."]), tools=[log_in, refuse])
    async with stream(who, "go", store=tmp_path / "s.db") as watched:
        events = [event.model_dump(mode="json") async for event in watched]
    assert {"tool_call", "tool_result"} <= {event["type"] for event in events}
    assert hides(events)


@pytest.mark.spec("STD-CALL-16")
async def test_arguments_and_previews_are_redacted_and_hashed_without_their_secrets(tmp_path: Path) -> None:
    keys = ("token", "secret", "password", "authorization", "cookie", "credential", "nonce", "api_key")

    @tool(effect="pure")
    def echo(
        token: str,
        secret: str,
        password: str,
        authorization: str,
        cookie: str,
        credential: str,
        nonce: str,
        api_key: str,
    ) -> str:
        """Give it all back."""
        return " ".join((token, secret, password, authorization, cookie, credential, nonce, api_key))

    async def started(mark: str) -> tuple[dict[str, Any], str]:
        given = {key: f"{mark}-{key}-value" for key in keys}
        who = Agent("echo", scripted([calls(("echo", given)), "Done."]), tools=[echo])
        result = await run(who, "go", store=tmp_path / f"{mark}.db")
        events = [event.model_dump(mode="json") for event in run_stream(result.turn_id, result.facts())]
        async with opened_store(tmp_path / f"{mark}.db") as store:
            reader = EventReader(store)
            published = [wire(await reader.read(fact)) for fact in result.facts()]
        begun: Any = next(event["payload"] for event in published if event["type"] == "tool.started")
        ended: Any = next(event["payload"] for event in published if event["type"] == "tool.result")
        assert begun["safe_args"] == dict.fromkeys(keys, "[redacted]")
        assert ended["preview"] == " ".join(["[redacted]"] * len(keys))
        shown = next(event for event in events if event["type"] == "tool_result")
        assert shown["preview"] == ended["preview"]
        return begun, ended["preview"]

    one, other = await started("one"), await started("two")
    assert one[0]["args_sha256"] == other[0]["args_sha256"], "the hash does not depend on a secret"


async def test_audit_hashes_do_not_depend_on_the_secret_a_tool_repeats(tmp_path: Path) -> None:
    async def audited(password: str) -> tuple[str, str]:
        @tool(effect="pure")
        def log_in(password: str) -> str:
            """Repeats it."""
            return f"hello {password}"

        who = Agent("a", scripted([calls(("log_in", {"password": password})), "Done."]), tools=[log_in])
        (entry,) = (await run(who, "go", store=tmp_path / f"{password}.db")).tool_audit_events
        return entry.parameters_sha256, entry.result_sha256

    assert await audited("first-secret") == await audited("other-secret")
    common: dict[str, Any] = {"turn_count": 1, "tool_name": "log_in", "tool_call_id": "c", "parameters": {}}
    plain = [
        audit_entry(**common, result={"success": True, "result": f"hello {each}"}).result_sha256
        for each in ("first-secret", "other-secret")
    ]
    assert plain[0] != plain[1], "hashed as it came, it would"


async def test_a_model_cannot_blot_out_what_it_does_by_calling_it_a_secret(tmp_path: Path) -> None:
    """A value is hidden in what comes back, never in the arguments of another call."""
    cmd = "rm -rf everything"
    who = Agent(
        "sly",
        scripted(
            [
                calls(("refuse", {"password": cmd, "pin": "completed"})),
                calls(("confirm", {"password": "x", "note": cmd})),
            ]
        ),
        tools=[refuse, confirm],
        hitl_tools=["confirm"],
    )
    result = await run(who, "go", store=tmp_path / "sly.db")
    assert result.approvals[0].arguments == {"password": "[redacted]", "note": cmd}
    async with opened_store(tmp_path / "sly.db") as store:
        reader = EventReader(store)
        events: list[Any] = [wire(await reader.read(fact)) for fact in result.facts()]
    asked = next(event for event in events if event["type"] == "action.required")
    assert asked["payload"]["safe_args"]["note"] == cmd
