"""Fields that an agent adds to every tool it shows, through whole runs: shown, taken out, on record, never run with."""

import copy
import json
from typing import Any

import pytest

from kit.runs.asked_runs import World, again, agent, asked, say
from kit.runs.engine_runs import of_kind
from wakeful import Agent, Approve, Edit, Reject, RunContext, Tool, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.conversation import CallPart
from wakeful.contracts.envelope import published
from wakeful.contracts.events import ActionRequired, ToolFailed, ToolResult, ToolStarted
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.levels import Call, Level
from wakeful.decisions.redaction import stable_hash
from wakeful.gate.call_at_gate import CallAtGate, Consultation
from wakeful.gate.passage import Mediator
from wakeful.gate.turn_gate import GateParts
from wakeful.ports import ModelRequest
from wakeful.providers.anthropic.encode import AnthropicEncoder as Anthropic
from wakeful.providers.openai_chat.encode import ChatEncoder as Chat
from wakeful.providers.openai_responses.encode import ResponsesEncoder as Responses
from wakeful.providers.profiles import profile_of
from wakeful.providers.scripted import ScriptedModel
from wakeful.providers.wire.names import WireNames
from wakeful.providers.wire.schemas import emit
from wakeful.service.commands.agent_rebuild import rebuilt_agent
from wakeful.store.memory import MemoryStore
from wakeful.tools.call_runner import CallHandle, begin
from wakeful.tools.source import Offer, ToolSource

WHY = {"why": "Why you call this tool.", "mood": "How you feel."}
WORD = "because-the-box-was-broken"
INJECTED = {"why": WORD, "mood": {"odd": [1, None]}}


class Catches(Tool[Any]):
    """A tool that takes whatever it is given."""

    def __init__(self, name: str = "catch", **options: Any) -> None:
        self.given: list[dict[str, Any]] = []
        self.run_with: list[dict[str, Any]] = []
        schema = {"type": "object", "properties": {"order": {"type": "string"}}, "additionalProperties": True}
        self._declaration = ToolDeclaration(name=name, input_schema=schema, effect="pure", **options)

    @property
    def declaration(self) -> ToolDeclaration:
        return self._declaration

    @property
    def name(self) -> str:
        return self._declaration.name

    @property
    def needs_deps(self) -> bool:
        return False

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        self.given.append(arguments)

        def work(**given: Any) -> str:
            self.run_with.append(given)
            return "caught"

        return begin(work, False, (), arguments)


class Server(ToolSource):
    """Tools that come from elsewhere."""

    def __init__(self, *tools: Tool[Any]) -> None:
        self._tools = tools

    @property
    def name(self) -> str:
        return "elsewhere"

    async def offer(self) -> Offer:
        return Offer(self._tools)


# --- what the model is shown ---------------------------------------------------------------------------------------


async def requested(support: Any, **options: Any) -> ModelRequest:
    """The request that a run of this agent makes."""
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> str:
        seen.append(request)
        return "done"

    await run(Agent("shop", ScriptedModel(answer), tools=support, **options), "go")
    return seen[0]


def emitted(request: ModelRequest) -> dict[str, list[dict[str, Any]]]:
    """The tools of a request in the three wire formats: their schemas."""
    names, tools = WireNames(request.tools), tuple(request.tools)
    claude = Anthropic("claude-opus-4-7", profile_of("claude-opus-4-7"), tools, names=names).body(request)
    bodies = {"anthropic": claude}
    for name, encoder in (("chat", Chat), ("responses", Responses)):
        bodies[name] = encoder("gpt-5.5", profile_of("gpt-5.5"), names).body(request)
    schemas: dict[str, list[dict[str, Any]]] = {}
    for name, chunks in bodies.items():
        sent = [each.get("function", each) for each in json.loads(b"".join(chunks))["tools"]]
        schemas[name] = [each.get("input_schema") or each["parameters"] for each in sent]
    return schemas


@pytest.mark.spec("CTL-INJ-01", "CTL-INJ-02", "CTL-CFG-08")
async def test_every_tool_is_shown_with_the_fields_and_none_is_changed_by_it() -> None:
    world = World()
    own, other = world.tool(), Catches()
    declared = [copy.deepcopy(own.declaration), copy.deepcopy(other.declaration)]
    plain, shown = await requested([own, other]), await requested([own, Server(other)], injected_tool_args=WHY)
    mood = await requested([own], injected_tool_args={"temper": "Another agent's field."})
    for before, after in zip(plain.tools, shown.tools, strict=True):
        added = {name: {"type": "string", "description": words} for name, words in WHY.items()}
        expected = copy.deepcopy(before.input_schema)
        expected["properties"] = {**expected["properties"], **added}
        assert after.input_schema == expected, "the fields, as optional texts, and nothing else"
        assert after.model_copy(update={"input_schema": {}}) == before.model_copy(update={"input_schema": {}})
    assert [own.declaration, other.declaration] == declared, "the tools' own schemas are as they were"
    properties = mood.tools[0].input_schema["properties"]
    assert "temper" in properties and not WHY.keys() & properties.keys(), "agents that share a tool share no field"


@pytest.mark.spec("CTL-INJ-07")
async def test_an_agent_that_is_built_from_what_was_stored_shows_the_same_schemas_as_the_one_in_code() -> None:
    seen: list[list[ToolDeclaration]] = []

    def answer(request: ModelRequest) -> str:
        seen.append(list(request.tools))
        return "done"

    own, other, store = World().tool(), Catches(), MemoryStore()
    model, around = ScriptedModel(answer), new_engine(store)
    in_code = Agent("shop", model, tools=[own, other], injected_tool_args=WHY)
    live = await run(in_code, "go", store=store)
    # As its own configuration wrote it down, and as its turn did.
    written = {**Agent("shop", "a:b", tools=[own, other], injected_tool_args=WHY).to_dict(), "model": "a:b"}
    from_row = Agent.from_dict(json.loads(json.dumps(written)), tools=[own, other])
    row = await store.turn(live.turn_id)
    assert row is not None
    from_turn = await rebuilt_agent(around, row, [own, other], model="a:b")
    for stored in (from_row, from_turn):
        assert stored.injected_tool_args == WHY
        again = Agent("shop", model, tools=stored.tools, injected_tool_args=stored.injected_tool_args)
        await run(again, "go")
    first, *others = seen
    assert len(others) == 2 and all(shown == first for shown in others)
    assert all(WHY.keys() <= declared.input_schema["properties"].keys() for declared in first)


@pytest.mark.spec("CTL-INJ-08")
async def test_in_every_wire_format_the_field_is_an_optional_text_and_its_value_is_kept_as_it_came() -> None:
    request = await requested([World().tool()], injected_tool_args=WHY)
    for wire, (schema, *_) in emitted(request).items():
        assert schema["properties"]["why"] == {"type": "string", "description": WHY["why"]}, wire
        assert "why" not in schema.get("required", []), wire
    strict = emit(request.tools[0].input_schema, "strict", "openai").schema
    assert strict["properties"]["why"]["type"] == ["string", "null"] and "why" in strict["required"]
    caught = Catches()
    result = await run(agent([caught], (("catch", {"order": "A", **INJECTED}),), injected_tool_args=WHY), "go")
    assert of_kind(result, ToolResult)[0].metadata.injected_args == INJECTED, "whatever its type"


# --- what the tool gets --------------------------------------------------------------------------------------------


@pytest.mark.spec("CTL-INJ-05", "CTL-REJ-02", "CTL-INJ-06", "CTL-META-07")
async def test_no_injected_field_reaches_a_tool_and_each_is_in_the_record_of_its_call() -> None:
    caught, other = Catches(), Catches("elsewhere/other")
    rounds = (
        ("catch", {"order": "A", "surprise": 1, **INJECTED}),
        ("catch", {"order": "B"}),
        ("elsewhere/other", {"why": "alone"}),
    )
    support = agent([caught, Server(other)], rounds, injected_tool_args=WHY)
    result = await run(support, "go")
    assert result.output == "done"
    # Started with and run with: nothing else was there to be had.
    for given in (caught.given, caught.run_with):
        assert sorted(given, key=str) == [{"order": "A", "surprise": 1}, {"order": "B"}]
    assert other.given == other.run_with == [{}]
    ends = {end.item.call_id: end.metadata.injected_args for end in of_kind(result, ToolResult)}
    assert ends == {"call_1_1": INJECTED, "call_1_2": {}, "call_1_3": {"why": "alone"}}


async def test_without_the_configuration_the_same_words_do_reach_it() -> None:
    """The inversion: it is the configuration that takes them out."""
    caught = Catches()
    await run(agent([caught], (("catch", {"order": "A", "why": WORD}),)), "go")
    assert caught.given[0] == {"order": "A", "why": WORD}


@pytest.mark.spec("CTL-INJ-04")
async def test_they_are_taken_out_before_a_predicate_a_hook_or_the_tool_sees_the_call() -> None:
    seen: list[Any] = []

    @tool(effect="pure", approval=lambda call: seen.append(call.arguments) or False)
    async def look(order: str) -> str:
        seen.append({"order": order})
        return "seen"

    async def hook(at: CallAtGate) -> Consultation:
        seen.append(at.arguments)
        return Consultation()

    config = TurnConfig(
        agent_name="shop", model_ref="a:b", instructions="", tools=(look.declaration,), injected_tool_args=WHY
    )
    gate = Mediator(config, {"look": look}, "turn_1", GateParts(consult=(hook,)))
    part = CallPart(call_id="c", name="look", arguments={"order": "A", **INJECTED})
    admission = gate.admit(Call(part, 1, 0, Level()), part.arguments, now=0.0, batch_id="b", scheduling="parallel")
    assert admission.later is not None
    admission = (await admission.later())()
    assert admission.dispatch is not None and admission.dispatch.arguments == {"order": "A"}
    assert seen == [{"order": "A"}] * 2, "the predicate, then the hook"
    assert admission.dispatch.record.injected_args == INJECTED


# --- what is on record ---------------------------------------------------------------------------------------------


@pytest.mark.spec("CTL-INJ-06", "CTL-INJ-10", "CTL-META-06", "CTL-META-07")
@pytest.mark.parametrize("decided", [Approve(), Reject("no"), Edit({"order": "B", "cents": 1})], ids=str)
async def test_the_record_of_an_approval_keeps_them_apart_too(decided: Any) -> None:
    world, store = World(), MemoryStore()
    arguments = {"order": "A", "cents": 5}
    support = agent(
        [world.tool()], (("refund", {**arguments, **INJECTED}),), hitl_tools=["refund"], injected_tool_args=WHY
    )
    result = await asked(support, store)
    (approval,) = result.approvals
    assert (approval.arguments, approval.injected_args) == (arguments, INJECTED)
    assert approval.arguments_sha256 == stable_hash(arguments), "hashes are over what is run"
    assert WORD not in approval.prompt
    await say(store, approval, decided)
    done = await again(support, store)
    ran = [given for _, given in world.done]
    assert ran == ([] if isinstance(decided, Reject) else [getattr(decided, "arguments", arguments)])
    (end,) = (*of_kind(done, ToolResult), *of_kind(done, ToolFailed))
    assert (end.metadata.injected_args, end.metadata.approval_id) == (INJECTED, approval.id)
    (started,), (required,) = of_kind(done, ToolStarted), of_kind(done, ActionRequired)
    assert started.safe_args == required.safe_args == arguments
    assert started.args_sha256 == required.args_sha256 == stable_hash(arguments)
    for entry in done.facts():
        event = published(entry, store.runtime_id)
        if event.type != "assistant.recorded":  # the model's own words
            shown = json.dumps(_without_injected(event.payload))
            assert WORD not in shown, event.type


def _without_injected(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_injected(inner) for name, inner in value.items() if name != "injected_args"}
    return [_without_injected(inner) for inner in value] if isinstance(value, list) else value


async def test_what_readers_are_shown_of_a_call_is_what_was_run() -> None:
    caught = Catches()
    result = await run(agent([caught], (("catch", {"order": "A", **INJECTED}),), injected_tool_args=WHY), "go")
    (call,) = result.calls()
    assert call.arguments == {"order": "A"}
    assert WORD not in json.dumps(result.to_dict()["tool_execution_results"][0]["parameters"])
    (audit,) = result.tool_audit_events
    plain = await run(agent([Catches()], (("catch", {"order": "A"}),)), "go")
    assert audit.parameters_sha256 == plain.tool_audit_events[0].parameters_sha256
