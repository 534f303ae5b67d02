"""Routing of whole turns: what is known of each model when a turn begins, and what follows from it."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kit.hosts.chat_server import EDITOR, Client, Server, played
from kit.runs.engine_runs import calls, cut, kinds, of_kind
from kit.runs.level_scripts import SCHEMA, LevelModel, ends, finish, subtask, told
from wakeful import Agent, Budget, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.content import Image, Prompt, Text
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.errors import InvalidConfig, KeyMissing, ModelFailure
from wakeful.contracts.events import (
    CostEstimated,
    CostRecorded,
    LimitChanged,
    ModelFailed,
    ModelRequested,
    QuotaBlocked,
    QuotaLow,
    RateLimitHit,
    RoutingCandidatesResolved,
    RoutingDecided,
    RoutingFallbackApplied,
    RoutingNotPossible,
    RoutingSingleCandidate,
    TurnFailed,
)
from wakeful.contracts.model_settings import ModelSettings
from wakeful.contracts.models import ModelGlimpse, ProviderLimit, Reply, TokenUsage
from wakeful.engine.run_request import RunRequest
from wakeful.ports import Model, ModelRequest
from wakeful.providers.prices import IN_CODE, ListedPrice, Price
from wakeful.providers.profiles import ModelProfile
from wakeful.service.commands.turns import resume_turn, run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing import FixedClock, scripted
from wakeful.views.wire_messages import TurnTerminal

ABLE = ModelProfile(tools=True, images=True, structured_output=True, context_window=100_000)
BLIND = ModelProfile(tools=True)
PICTURE: Prompt = [Text("What is this?"), Image(data=b"png")]
CHEAP, DEAR = Price(Decimal(1), Decimal(1)), Price(Decimal(1_000_000), Decimal(1))


class Answers:
    """A model with a profile that says its name, after the failures it was given."""

    def __init__(
        self,
        ref: str,
        *failures: ModelFailure,
        profile: ModelProfile = ABLE,
        price: Price | None = None,
        leaves_machine: bool = False,
    ) -> None:
        self.ref = ref
        self.profile = profile
        self.price = None if price is None else ListedPrice(price, IN_CODE)
        self.leaves_machine = leaves_machine
        self.seen: list[ModelRequest] = []
        self._failures = list(failures)

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        self.seen.append(request)
        if self._failures:
            raise self._failures.pop(0)
        yield Reply(item=AssistantItem(parts=(Text(f"from {self.ref}"),)))


class Unspoken(Answers):
    """A model whose transport nobody speaks."""

    def refusal(self, settings: Mapping[str, Any]) -> ModelFailure:
        return ModelFailure("its transport is not supported", kind="unsupported_transport", stage="connect")


def limited(seconds: float) -> ModelFailure:
    return ModelFailure("slowly", kind="rate_limited", stage="headers", status=429, retry_after=seconds)


def blocked(until: datetime) -> ModelFailure:
    resets = until.isoformat().replace("+00:00", "Z")
    limit = ProviderLimit(name="tokens", limit=100, remaining=0, resets_at=resets)
    return ModelFailure("pay", kind="quota_exhausted", stage="headers", status=429, limits=(limit,))


async def identical(store: MemoryStore) -> bool:
    return all([(await replay_turn(store, row)).identical for row in await store.turns()])


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The owner's file."""
    monkeypatch.setenv("WAKEFUL_CONFIG", str(tmp_path / "wakeful.toml"))
    (tmp_path / "wakeful.toml").write_text("")
    return tmp_path / "wakeful.toml"


@pytest.mark.spec("STD-ROUTE-01", "STD-ROUTE-09", "STD-ROUTE-12")
async def test_routing_and_fallback_are_facts_of_the_turn_with_the_published_payloads() -> None:
    store = MemoryStore()
    down = ModelFailure("no", kind="auth_error", stage="headers", status=401)
    moved = await run(Agent("a", Answers("one:m", down), fallbacks=[Answers("two:m")]), "go", store=store)
    single = await run(Agent("b", Answers("one:m")), "go", store=store)
    refused = await run(Agent("c", Answers("one:m", profile=BLIND)), PICTURE, store=store)
    published = {
        RoutingCandidatesResolved: (
            moved,
            "routing_id requested_provider requested_model required_capabilities candidates excluded",
        ),
        RoutingDecided: (
            moved,
            "routing_id mode decision_source decision_reason requested_provider requested_model selected_model_ref "
            "candidate_count fallback_chain required_capabilities capability_gap requires_user_override limit_state",
        ),
        RoutingFallbackApplied: (
            moved,
            "routing_id from_model_ref to_model_ref reason attempt fallback_chain limit_state",
        ),
        RoutingNotPossible: (
            refused,
            "routing_id required_capabilities excluded decision_reason limit_state",
        ),
        RoutingSingleCandidate: (single, "routing_id mode selected_model_ref candidate_count limit_state"),
    }
    for kind, (result, fields) in published.items():
        (event,) = of_kind(result, kind)
        assert set(fields.split()) <= set(event.model_dump()), kind
    assert (single.status, of_kind(single, RoutingNotPossible)) == ("completed", [])
    told = [kind for kind in kinds(single.facts()) if kind.startswith("routing.")]
    assert told == ["routing.candidates.resolved", "routing.single_candidate", "routing.decided"]
    ids = {event.routing_id for event in (*of_kind(moved, RoutingDecided), *of_kind(moved, RoutingFallbackApplied))}
    assert len(ids) == 1, "what explains one decision has one id"
    assert await identical(store)


@pytest.mark.spec("STD-ROUTE-13")
async def test_without_a_candidate_no_model_is_asked_and_the_turn_ends_for_that_reason() -> None:
    store = MemoryStore()
    model = Answers("one:m", profile=BLIND)
    result = await run(Agent("a", model), PICTURE, store=store)
    (refused,) = of_kind(result, RoutingNotPossible)
    assert (result.status, result.stop_reason) == ("failed", "routing_not_possible")
    (end,) = of_kind(result, TurnFailed)
    assert (end.stop_reason, end.message) == ("routing_not_possible", refused.decision_reason)
    assert "one:m: capability_gap (it has no vision)" in result.message
    assert of_kind(result, ModelRequested) == of_kind(result, RoutingDecided) == [] and model.seen == []
    assert result.facts()[-1].fact.event is end
    assert await identical(store)
    # The inversion: for words alone the same model is a candidate.
    assert (await run(Agent("a", model), "go")).output == "from one:m"


@pytest.mark.spec("STD-ROUTE-11")
async def test_every_model_that_cannot_be_used_is_left_out_with_its_reason(
    owner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner.write_text('[models]\ndeny = ["banned:*"]\noffline = true\n')
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    store, clock = MemoryStore(), FixedClock()
    until = datetime.fromtimestamp(clock.now() / 1_000_000, UTC) + timedelta(hours=1)
    slow = Answers("slow:m", limited(3_600), price=CHEAP)
    broke = Answers("broke:m", blocked(until), price=CHEAP)
    good = Answers("good:m", price=CHEAP)
    system = new_engine(store, clock=clock)
    await run_turn(system, RunRequest(Agent("a", slow, fallbacks=[broke, good]), "go", thread="t"))
    chain: list[str | Model] = [
        Answers("blind:m", profile=BLIND, price=CHEAP),
        "groq:llama-3.3",
        slow,
        broke,
        Answers("dear:m", price=DEAR),
        Answers("banned:m", price=CHEAP),
        Unspoken("pigeon:m", price=CHEAP),
        Answers("secret:m"),
        Answers("far:m", price=CHEAP, leaves_machine=True),
        good,
    ]
    agent: Agent[Any, Any] = Agent("a", chain[0], fallbacks=chain[1:])
    result = await run_turn(system, RunRequest(agent, PICTURE, thread="t", budget=Budget(usd="0.5")))
    assert result.output == "from good:m"
    (resolved,) = of_kind(result, RoutingCandidatesResolved)
    assert {each.model_ref: each.reason for each in resolved.excluded} == {
        "blind:m": "capability_gap",
        "groq:llama-3.3": "no_credential",
        "slow:m": "rate_limited",
        "broke:m": "quota_blocked",
        "dear:m": "over_budget",
        "banned:m": "policy_denied",
        "pigeon:m": "unsupported_transport",
        "secret:m": "unpriced",
        "far:m": "offline",
    }
    assert [each.model_ref for each in resolved.candidates] == ["good:m"]
    assert [event.model_ref for event in of_kind(result, ModelRequested)] == ["good:m"]
    (decided,) = of_kind(result, RoutingDecided)
    assert (decided.limit_state.budget_limit, decided.limit_state.budget_spent) == ("0.5", "0")
    assert await identical(store)


@pytest.mark.spec("STD-ROUTE-15")
async def test_what_requests_cost_and_what_limits_say_are_facts_in_their_place() -> None:
    little = (ProviderLimit(name="tokens", limit=100, remaining=5, resets_at="2027-01-15T08:00:01Z"),)

    class Limited(Answers):
        def most_output(self, settings: Mapping[str, Any]) -> int:
            return 10

        async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
            async for said in super().respond(request):
                assert isinstance(said, Reply)
                yield said.model_copy(update={"limits": little, "usage": TokenUsage(input_tokens=9, output_tokens=1)})

    until = datetime(2027, 1, 15, tzinfo=UTC)
    first = Limited("one:m", blocked(until), price=CHEAP)
    second = Limited("two:m", limited(0), price=CHEAP)
    script = scripted([{"calls": [{"name": "nobody"}]}])
    result = await run(Agent("a", first, fallbacks=[second]), "go")
    stopped = await run(Agent("a", script), "go", budget=Budget(model_calls=1))
    told = [entry.fact.event for entry in result.facts()]
    wanted = ("cost.", "rate_limit.", "quota.", "model.requested", "model.completed")
    assert [event.kind for event in told if event.kind.startswith(wanted)] == [
        "cost.estimated", "model.requested", "quota.blocked",
        "cost.estimated", "model.requested", "rate_limit.hit",
        "cost.estimated", "model.requested", "model.completed", "cost.recorded", "quota.low",
    ]  # fmt: skip
    estimated, recorded = of_kind(result, CostEstimated)[-1], of_kind(result, CostRecorded)[-1]
    for cost in (estimated, recorded):
        assert (cost.model_ref, cost.currency, cost.priced) == ("two:m", "USD", True)
    assert Decimal(estimated.amount) >= Decimal(recorded.amount) == Decimal("0.00001")
    (hit,), (low,), (none_left,) = (of_kind(result, kind) for kind in (RateLimitHit, QuotaLow, QuotaBlocked))
    assert (hit.model_ref, hit.retry_after_ms) == ("two:m", 0)
    assert (low.limit_name, low.limit, low.observed, low.resets_at) == ("tokens", 100, 95, "2027-01-15T08:00:01Z")
    assert (none_left.model_ref, none_left.limit_name, none_left.observed) == ("one:m", "tokens", 100)
    (reached,) = of_kind(stopped, LimitChanged)
    assert (reached.limit_name, reached.limit, reached.observed) == ("llm_calls", 1, 2)


async def test_what_a_provider_said_about_its_limits_holds_for_later_turns_until_the_time_it_named() -> None:
    store, clock = MemoryStore(), FixedClock()
    slow, good = Answers("slow:m", limited(120)), Answers("good:m")
    agent: Agent[Any, Any] = Agent("a", slow, fallbacks=[good])
    system = new_engine(store, clock=clock)

    async def asked(thread: str) -> list[str]:
        result = await run_turn(system, RunRequest(agent, "go", thread=thread))
        return [event.model_ref for event in of_kind(result, ModelRequested)]

    assert await asked("t") == ["slow:m", "good:m"]
    assert await asked("t") == ["good:m"], "known from the turn before"
    assert await asked("other") == ["good:m"], "also in another conversation of the agent"
    clock.advance(119)
    assert await asked("t") == ["good:m"]
    clock.advance(2)
    assert await asked("t") == ["slow:m"], "its time is over"
    assert await identical(store)


async def test_a_model_is_asked_again_when_the_clock_that_its_limit_was_counted_from_is_set_back() -> None:
    store, clock = MemoryStore(), FixedClock()
    slow, good = Answers("slow:m", limited(7_200)), Answers("good:m")
    agent: Agent[Any, Any] = Agent("a", slow, fallbacks=[good])
    system = new_engine(store, clock=clock)
    clock.skip(20 * 86_400)
    await run_turn(system, RunRequest(agent, "go", thread="t"))
    clock.skip(-20 * 86_400)
    result = await run_turn(system, RunRequest(agent, "go", thread="t"))
    assert [event.model_ref for event in of_kind(result, ModelRequested)] == ["slow:m"]
    assert await identical(store)


@pytest.mark.spec("STD-ROUTE-10")
async def test_the_decision_stands_before_the_request_once_a_turn_and_again_when_needs_or_candidates_have_changed() -> (
    None
):
    @tool(effect="pure")
    async def look() -> str:
        """Look."""
        return "seen"

    memory = Memory()
    store = MemoryStore(memory)
    script = scripted([{"calls": [{"name": "look"}]}, "done"], name="m")
    result = await run(Agent("a", script, fallbacks=[Answers("two:m")], tools=[look]), "go", store=store)
    told = [kind for kind in kinds(result.facts()) if kind.startswith("routing.") or kind == "model.requested"]
    assert told == ["routing.candidates.resolved", "routing.decided", "model.requested", "model.requested"]
    assert await identical(store)

    place = kinds(result.facts()).index("model.requested") + 1
    for fallbacks, settings, anew in (
        ([Answers("two:m")], {}, []),
        ([], {}, ["single_candidate", "decided"]),
        ([Answers("two:m")], {"require": ["tools"]}, ["decided"]),
    ):
        taken_up = MemoryStore(cut(memory, result.agent_id, result.facts()[place - 1].seq))
        agent: Agent[Any, Any] = Agent("a", script, fallbacks=fallbacks, tools=[look], settings=settings)
        finished = await resume_turn(new_engine(taken_up), result.turn_id, [agent])
        assert finished.output == "done"
        after = kinds(finished.facts())[place:]
        routing = ["routing.candidates.resolved", *(f"routing.{word}" for word in anew)] if anew else []
        assert [kind for kind in after if kind.startswith("routing.")] == routing
        if anew:
            assert after.index("routing.decided") < after.index("model.requested")
        assert await identical(taken_up)


async def test_a_turn_that_was_cut_off_at_its_fallback_goes_on_although_the_chain_is_shorter_now() -> None:
    memory = Memory()
    down = ModelFailure("no", kind="auth_error", stage="headers", status=401)
    agent: Agent[Any, Any] = Agent("a", Answers("one:m", down), fallbacks=[Answers("two:m")])
    result = await run(agent, "go", store=MemoryStore(memory))
    asked = [entry.seq for entry in result.facts() if isinstance(entry.fact.event, ModelRequested)]
    taken_up = MemoryStore(cut(memory, result.agent_id, asked[-1]))
    finished = await resume_turn(new_engine(taken_up), result.turn_id, [Agent("a", Answers("one:m"))])
    assert finished.output == "from one:m"
    assert await identical(taken_up)


async def test_a_model_without_its_key_is_left_out_and_a_chain_without_any_key_is_refused_before_it_is_admitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    store = MemoryStore()
    helped = await run(Agent("a", "openai/gpt-5.5", fallbacks=[Answers("two:m")]), "go", store=store)
    (resolved,) = of_kind(helped, RoutingCandidatesResolved)
    (left_out,) = resolved.excluded
    assert (left_out.model_ref, left_out.reason) == ("openai:gpt-5.5", "no_credential")
    assert "OPENAI_API_KEY" in left_out.detail and helped.output == "from two:m"
    before = await store.turns()
    with pytest.raises(KeyMissing, match="OPENAI_API_KEY"):
        await run(Agent("a", "openai:gpt-5.5", fallbacks=["groq:llama-3"]), "go", store=store)
    assert await store.turns() == before


async def test_a_request_that_needs_tools_is_a_capability_gap_for_a_model_without_them() -> None:
    @tool(effect="pure")
    async def build_workflow(graph: str) -> str:
        """The editor's answer."""
        return graph

    @tool(effect="pure")
    async def finish_subtask(output: str) -> str:
        """A child's answer, where it has to fit a schema."""
        return output

    @tool(effect="pure")
    async def look() -> str:
        """Any other tool."""
        return "seen"

    mute = ModelProfile(tools=False)
    for needed in (build_workflow, finish_subtask):
        model = Answers("one:m", profile=mute)
        result = await run(Agent("a", model, tools=[look, needed]), "go")
        (refused,) = of_kind(result, RoutingNotPossible)
        assert refused.required_capabilities == ("tools",)
        assert [(each.reason, each.detail) for each in refused.excluded] == [("capability_gap", "it has no tools")]
        assert (result.stop_reason, model.seen) == ("routing_not_possible", [])
    assert (await run(Agent("a", Answers("one:m", profile=mute), tools=[look]), "go")).output == "from one:m"


class Mute(LevelModel):
    """A model that is known to call no tools."""

    profile = ModelProfile(tools=False)


@pytest.mark.spec("LOOP-PROV-07")
async def test_what_needs_tools_is_told_to_be_a_gap_and_not_left_to_a_model_without_them() -> None:
    # The editor's `build_workflow`: nobody is asked, and the client is told why.
    agent: Agent[Any, Any] = Agent("a", "scripted:demo")
    server = await Server(MemoryStore(), agent, played("I would build it.")).with_registry()
    server.model = mute = Mute({"go": ["I would build it."]})
    client = Client(server)
    refused = await client.say("go", chat_context=EDITOR)
    assert (refused.stop_reason, mute.seen) == ("routing_not_possible", [])
    (end,) = (one for one in client.sent if isinstance(one, TurnTerminal))
    assert end.message is not None and "capability_gap (it has no tools)" in end.message
    assert (await client.say("go")).output == "I would build it.", "in a thread nothing needs them"

    # A subtask with an output schema, when the model that can call fails and the next in the chain cannot.
    down = {"fail": {"kind": "overloaded", "message": "busy", "retryable": False}}
    asking = {"go": [calls(subtask("fit", output_schema=SCHEMA)), "done"], "fit": [down]}
    for last in ([], [LevelModel({"fit": [calls(finish(n=7))]})]):
        store, mute = MemoryStore(), Mute({"fit": ["it is seven"]})
        chain = [mute, *last]
        result = await run(Agent("a", LevelModel(asking), fallbacks=chain, subtasks=True), "go", store=store)
        assert (result.output, mute.seen) == ("done", []), "it is not asked"
        (lost,) = (one for one in of_kind(result, ModelFailed) if one.model_ref == mute.ref and one.candidate == 1)
        assert lost.message.startswith("capability_gap: it has no tools")
        if last:
            assert ends(result, "run_subtask")[0].item.text == '{"n":7}', "whoever can is asked in its place"
        else:
            (said,) = told(result)
            assert said["error"] == "subtask_failed" and "capability_gap: it has no tools" in said["message"]
        assert await identical(store)

    # Without a schema the same model answers the subtask in words.
    plain = {"go": [calls(subtask("dig")), "done"], "dig": [down]}
    worded = Mute({"dig": ["gold"]})
    result = await run(Agent("a", LevelModel(plain), fallbacks=[worded], subtasks=True), "go")
    assert ends(result, "run_subtask")[0].item.text == "gold"


async def test_what_the_caller_requires_is_heeded_and_never_sent() -> None:
    blind, able = Answers("blind:m", profile=BLIND), Answers("able:m")
    settings = {"require": ["vision"], "temperature": 0.5}
    result = await run(Agent("a", blind, fallbacks=[able], settings=settings), "go")
    assert result.output == "from able:m"
    assert able.seen[0].settings == ModelSettings(temperature=0.5)
    accepted = await run(Agent("a", blind, settings={**settings, "accept_gap": ["vision"]}), "go")
    (decided,) = of_kind(accepted, RoutingDecided)
    assert (decided.capability_gap, decided.requires_user_override) == (("vision",), True)
    assert accepted.output == "from blind:m" and blind.seen[0].settings == ModelSettings(temperature=0.5)
    for wrong in ("vision", ["sight"], [1]):
        with pytest.raises(InvalidConfig, match=r"settings\.require"):
            Agent("a", blind, settings={"require": wrong})


async def test_an_agent_that_requires_something_comes_back_from_its_file_and_from_its_turn() -> None:
    agent: Agent[Any, Any] = Agent("a", "scripted:demo", settings={"require": ["tools"]})
    assert Agent.from_dict(agent.to_dict()).settings == ModelSettings(require=("tools",))


async def test_who_named_the_model_is_said() -> None:
    named = await run(Agent("a", Answers("one:m")), "go", model=Answers("two:m"))
    own = await run(Agent("a", Answers("one:m")), "go")
    assert [of_kind(result, RoutingDecided)[0].decision_source for result in (named, own)] == ["user", "agent_config"]


async def test_a_prompt_that_no_summary_could_shorten_rules_a_small_window_out() -> None:
    small = Answers("small:m", profile=ModelProfile(context_window=100))
    large = Answers("large:m", profile=ModelProfile(context_window=100_000))
    result = await run(Agent("a", small, fallbacks=[large]), "x" * 1_000)
    assert result.output == "from large:m"
    (resolved,) = of_kind(result, RoutingCandidatesResolved)
    assert [(each.model_ref, each.reason) for each in resolved.excluded] == [("small:m", "capability_gap")]
    assert (await run(Agent("a", small, fallbacks=[large]), "x" * 100)).output == "from small:m"


async def test_children_ask_the_models_that_were_decided_on_for_the_turn() -> None:
    class Splits(Answers):
        """Hands its task to a child, which answers."""

        async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
            items = list(request.history)
            if len(items) > 1 or "child" in items[0].text:
                async for said in super().respond(request):
                    yield said
                return
            asked = {"title": "part", "instructions": "child"}
            yield Reply(
                item=AssistantItem(parts=(CallPart(call_id="c1", name="run_subtask", arguments=asked),)),
                stop_reason="tool_calls",
            )

    store = MemoryStore()
    down = ModelFailure("no", kind="auth_error", stage="headers", status=401)
    barred, splits, last = Unspoken("pigeon:m"), Splits("two:m", down), Answers("three:m")
    agent: Agent[Any, Any] = Agent("a", barred, fallbacks=[splits, last], subtasks=True)
    result = await run(agent, "go", store=store)
    assert result.output == "from two:m"
    asked = [(entry.fact.depth, entry.fact.event) for entry in result.facts()]
    assert [
        (depth, event.model_ref, event.candidate) for depth, event in asked if isinstance(event, ModelRequested)
    ] == [(0, "two:m", 0), (1, "two:m", 0), (1, "three:m", 1), (0, "two:m", 0)]
    assert await identical(store)
