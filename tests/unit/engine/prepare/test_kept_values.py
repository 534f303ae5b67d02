"""What follows from an agent alone is worked out once and kept with it; whatever else has a say is looked at anew."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from wakeful import Agent, Budget, run, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import TurnStarted
from wakeful.contracts.policies import PolicyContext, Rule
from wakeful.engine.admission import allowed
from wakeful.engine.prepare.tools import Belt, toolbelt
from wakeful.engine.run_request import RunRequest
from wakeful.engine.state_loader import load_config
from wakeful.ports import AdmissionAnswer, RuleRow, Store
from wakeful.service.commands.interruption import cancel_turn
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted
from wakeful.testing.wrapped_store import WrappedStore
from wakeful.tools.source import Offer, Surroundings, ToolSource


@tool(effect="pure")
def look() -> str:
    """Look."""
    return "seen"


def standing(name: str, **fields: Any) -> RuleRow:
    rule = Rule(match=name, decision="deny", **fields)
    return RuleRow(rule.id, "clerk", "clerk", rule.model_dump(mode="json"), 0, "ada", None, None)


async def belt_of(
    agent: Agent[Any, Any], *rules: RuleRow, now: float = 0.0, context: PolicyContext = "library"
) -> Belt:
    async with AsyncExitStack() as stack:
        return await toolbelt(agent, rules, now, Surroundings(), stack, context)


async def test_the_belt_of_an_agent_is_worked_out_once_for_the_same_standing_answers() -> None:
    agent = Agent("clerk", scripted(["done"]), tools=[look])
    first = await belt_of(agent)
    assert await belt_of(agent) is first
    denied = await belt_of(agent, standing("look"))
    assert [tool.name for tool in denied.offered] == []
    assert await belt_of(agent, standing("look")) is denied
    assert await belt_of(agent) == first._replace(catalog_with=(await belt_of(agent)).catalog_with)
    revoked = standing("look")._replace(revoked_at=1)
    assert [tool.name for tool in (await belt_of(agent, revoked)).offered] == ["look"]


async def test_the_belt_of_another_context_is_another_one() -> None:
    agent = Agent("clerk", scripted(["done"]), tools=[look])
    here, there = await belt_of(agent), await belt_of(agent, context="thread")
    assert (here.policy.tools.context, there.policy.tools.context) == ("library", "thread")


async def test_an_answer_that_expires_is_looked_at_in_every_turn() -> None:
    agent = Agent("clerk", scripted(["done"]), tools=[look])
    rule = standing("look", expires=10.0)
    assert [tool.name for tool in (await belt_of(agent, rule, now=9.0)).offered] == []
    assert [tool.name for tool in (await belt_of(agent, rule, now=11.0)).offered] == ["look"]


async def test_a_source_is_asked_in_every_turn() -> None:
    class Server(ToolSource):
        asked = 0

        @property
        def name(self) -> str:
            return "server"

        async def offer(self) -> Offer:
            self.asked += 1
            return Offer((look,) if self.asked > 1 else ())

    agent = Agent("clerk", scripted(["done"]), tools=[Server()])
    assert [[tool.name for tool in (await belt_of(agent)).offered] for _ in range(2)] == [[], ["look"]]


async def test_turns_share_a_configuration_until_what_it_rests_on_changes() -> None:
    told = ["Be brief."]
    agent = Agent("clerk", scripted(["done"]), instructions=lambda ctx: told[0], tools=[look])

    async def config(**options: Any) -> tuple[str, str]:
        """Its digest, and what it says."""
        store = MemoryStore()
        result = await run(agent, "hello", store=store, **options)
        (started,) = [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, TurnStarted)]
        digest = started.config_ref.digest
        assert await store.get_blob(digest), "in every store that a turn is in"
        return digest, (await load_config(store, digest)).instructions

    first = await config()
    assert await config() == first
    told[0] = "Be kind."
    second = await config()
    assert (first[1], second[1], first[0] == second[0]) == ("Be brief.", "Be kind.", False)
    assert (await config(instructions="Be bold."))[1] == "Be bold."
    assert await config() == second


async def test_limits_follow_the_budget_of_the_run_and_what_the_owner_overrides() -> None:
    agent = Agent("clerk", scripted(["done"]), budget=Budget(model_calls=7))
    engine = new_engine(MemoryStore())

    def calls(budget: Budget | None = None) -> int | None:
        return allowed(engine, RunRequest(agent, "", budget=budget)).model_calls

    assert [calls(), calls(Budget(model_calls=3)), calls()] == [7, 3, 7]


class Reads(WrappedStore):
    """Notes who reads the log, and has somebody else write as soon as the message is safe."""

    def __init__(self, inner: Store, *, is_interrupted: bool) -> None:
        super().__init__(inner)
        self.reads = 0
        self._is_interrupted = is_interrupted

    async def read(self, agent_id: str, **options: Any) -> list[StoredFact]:
        self.reads += 1
        return await super().read(agent_id, **options)

    async def admit(self, agent_id: str, facts: Sequence[Fact], **options: Any) -> AdmissionAnswer | None:
        answer = await super().admit(agent_id, facts, **options)
        if self._is_interrupted and answer is not None and answer.turn is not None:
            await cancel_turn(new_engine(self.inner), answer.turn.turn_id)
        return answer


async def test_a_message_that_was_taken_here_is_not_read_again() -> None:
    store = Reads(MemoryStore(), is_interrupted=False)
    result = await run(Agent("clerk", scripted(["done"])), "hello", store=store)
    assert (result.output, store.reads) == ("done", 0)
    (started,) = [entry.fact.event for entry in result.facts() if isinstance(entry.fact.event, TurnStarted)]
    assert (started.turn_index, started.window_from) == (1, 2)


async def test_what_somebody_wrote_before_the_turn_began_is_heard() -> None:
    store = Reads(MemoryStore(), is_interrupted=True)
    result = await run(Agent("clerk", scripted(["done"])), "hello", store=store)
    assert (result.status, result.stop_reason) == ("cancelled", "cancelled")
