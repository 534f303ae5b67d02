"""A workflow as a turn: order, failure, approvals, policy, budget, a kill at every commit. Every run is replayed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kit.runs.asked_runs import say
from kit.runs.engine_runs import Died, Dying, calls
from wakeful import Agent, Budget, HookInput, HookVerdict, RunContext, hook, tool
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.approvals import Answer, Approve, Reject
from wakeful.contracts.content import Text
from wakeful.contracts.conversation import UserItem
from wakeful.contracts.envelope import Fact
from wakeful.contracts.errors import AgentMissing, DepsMissing, InvalidValue, InvalidWorkflow, NotBuiltYet, TurnNotFound
from wakeful.contracts.events import (
    SubagentStarted,
    ToolFailed,
    ToolResult,
    ToolStarted,
    TurnCompleted,
    TurnFailed,
    TurnInterjected,
)
from wakeful.contracts.policies import GatePolicy, Rule, ToolPolicy
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.engine.run_request import RunRequest, WorkflowTerms
from wakeful.engine.workflow_parts import workflow_registry
from wakeful.ports import Store
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.commands.approvals import approvals
from wakeful.service.commands.interruption import cancel_turn
from wakeful.service.commands.turns import resume_turn, run_turn
from wakeful.service.queries.replay import replay_turn
from wakeful.service.workflows.runs import WorkflowOutcome, run_workflow, workflow_result
from wakeful.store.memory import Memory, MemoryStore
from wakeful.store.sqlite import SqliteStore
from wakeful.tools.proposal import ProposedCall

NO_MONEY = GatePolicy(
    tools=ToolPolicy(context="library", classes=frozenset({"safe", "external_write", "subagent"})),
    rules=(Rule(match="refund", decision="deny", reason="no money leaves"),),
)


class Shop:
    """Tools that note what they did."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.met = asyncio.Event()
        self.here = 0

        @tool(effect="pure")
        def look_up(order: str) -> dict[str, Any]:
            """An order."""
            return {"order": order, "cents": 4200}

        @tool(effect="irreversible")
        def refund(order: str, cents: int, agreed: str = "") -> str:
            """Pay back."""
            self.did.append(f"refund {order} {cents}{agreed}")
            return f"{cents} for {order}"

        @tool(effect="pure")
        def fail(order: str) -> dict[str, Any]:
            """Fails."""
            raise ValueError("no such order")

        @tool(effect="pure")
        async def meet(who: str) -> str:
            """Ends when both are there."""
            self.here += 1
            if self.here == 2:
                self.met.set()
            await self.met.wait()
            return who

        @tool(effect="pure")
        def long(order: str) -> str:
            """Much text."""
            return "x" * 200_000

        @tool(effect="pure")
        def count(text: str) -> int:
            """How long a text is."""
            return len(text)

        self.tools: list[Any] = [look_up, refund, fail, meet, long, count]

    def agent(self, **options: Any) -> Agent[Any, Any]:
        return Agent("shop", ScriptedModel(["nobody asks"]), tools=self.tools, **options)


def edge(source: str, target: str, target_input: str, source_output: str = "result") -> dict[str, Any]:
    return {"source": source, "source_output": source_output, "target": target, "target_input": target_input}


def node(name: str, ref: str, kind: str = "tool", **inputs: Any) -> dict[str, Any]:
    return {"id": name, "kind": kind, "ref": ref, "inputs": inputs}


def drawn(nodes: list[dict[str, Any]], edges: list[dict[str, Any]] | None = None, **more: Any) -> WorkflowGraph:
    return WorkflowGraph.model_validate({"name": "drawn", "nodes": nodes, "edges": edges or [], **more})


def pay_back(first: str = "look_up", ask: bool = False) -> WorkflowGraph:
    """Find an order and pay it back, once somebody agrees; look another up meanwhile."""
    asking = [node("agreed", "", "approval", question="Pay back?")] if ask else []
    return drawn(
        [node("pay", "refund"), node("find", first), node("other", "look_up", order="B1"), *asking],
        [
            edge("$input", "find", "order", "order"),
            edge("$input", "pay", "order", "order"),
            edge("find", "pay", "cents", "result.cents"),
            *([edge("find", "agreed", "show"), edge("agreed", "pay", "agreed")] if ask else []),
        ],
        inputs={"order": {"type": "string"}},
        required_inputs=["order"],
        outputs={"receipt": {"node": "pay"}},
    )


async def ran(
    store: Store,
    graph: WorkflowGraph,
    agent: Agent[Any, Any],
    agents: tuple[Agent[Any, Any], ...] = (),
    inputs: dict[str, Any] | None = None,
    **options: Any,
) -> WorkflowOutcome:
    system = new_engine(store)
    registry = await workflow_registry(system, agent, agents)
    request = RunRequest(agent, options.pop("prompt", ""), workflows=WorkflowTerms(agents=agents), **options)
    outcome = await run_workflow(system, registry, graph, request, inputs)
    await replays(store, outcome.run.turn_id)
    return outcome


async def replays(store: Store, turn_id: str) -> None:
    row = await store.turn(turn_id)
    assert row is not None
    replayed = await replay_turn(store, row)
    assert replayed.identical, replayed.divergence


def statuses(outcome: WorkflowOutcome) -> dict[str, str]:
    assert outcome.result is not None
    return {each.id: each.status for each in outcome.result.nodes}


def errors(outcome: WorkflowOutcome) -> dict[str, str]:
    assert outcome.result is not None
    return {each.id: each.error.kind for each in outcome.result.nodes if each.error is not None}


async def test_nodes_run_after_what_they_depend_on_and_no_model_is_asked() -> None:
    shop = Shop()
    done = await ran(MemoryStore(), pay_back(), shop.agent(), inputs={"order": "A17"})
    assert (done.run.status, done.run.model_calls, done.run.tool_calls) == ("completed", 0, 3)
    assert done.result is not None and done.result.status == "succeeded"
    assert done.result.outputs == {"receipt": "4200 for A17"}
    assert shop.did == ["refund A17 4200"]


async def test_nodes_that_need_nothing_of_each_other_run_at_the_same_time() -> None:
    shop = Shop()
    graph = drawn([node("a", "meet", who="a"), node("b", "meet", who="b")])
    assert statuses(await ran(MemoryStore(), graph, shop.agent())) == {"a": "succeeded", "b": "succeeded"}


@pytest.mark.spec("LOOP-WF-14")
async def test_a_failed_node_fails_the_run_skips_what_depends_on_it_and_lets_the_others_finish() -> None:
    shop = Shop()
    done = await ran(MemoryStore(), pay_back("fail"), shop.agent(), inputs={"order": "A17"})
    assert (done.run.status, done.run.stop_reason) == ("failed", "node_failed")
    assert done.result is not None and done.result.status == "failed"
    assert statuses(done) == {"find": "failed", "pay": "skipped", "other": "succeeded"}
    by_id = {each.id: each for each in done.result.nodes}
    assert by_id["other"].output == {"order": "B1", "cents": 4200}
    assert by_id["find"].error is not None and "no such order" in by_id["find"].error.message
    assert errors(done)["pay"] == "dependency_failed"
    ends = [e for e in done.run.facts() if isinstance(e.fact.event, TurnCompleted | TurnFailed)]
    assert len(ends) == 1
    assert shop.did == []
    # A run that is cancelled has an entry for each node, too.
    cancelled = await cancelled_run()
    assert statuses(cancelled) == {"ask": "cancelled", "later": "cancelled", "quick": "succeeded"}


async def cancelled_run() -> WorkflowOutcome:
    store, shop = MemoryStore(), Shop()
    graph = drawn(
        [node("ask", "", "approval", question="?"), node("later", "count"), node("quick", "look_up", order="A1")],
        [edge("ask", "later", "text")],
    )

    async def approver(_: Any) -> None:
        await cancel_turn(new_engine(store), (await store.turns())[0].turn_id)

    done = await ran(store, graph, shop.agent(), approver=approver)
    assert done.run.status == "cancelled"
    assert done.result is not None and done.result.status == "cancelled"
    return done


async def test_an_approval_waits_over_a_restart_and_its_answer_goes_on(tmp_path: Path) -> None:
    shop = Shop()
    agent, graph = shop.agent(), pay_back(ask=True)
    store = await SqliteStore.open(tmp_path / "runs.db")
    first = await ran(store, graph, agent, inputs={"order": "A17"}, key="a17")
    assert (first.run.status, first.result) == ("approval_required", None)
    (question,) = first.run.questions
    assert question.prompt.startswith("Pay back?\n\n") and "4200" in question.prompt
    assert question.run_kind == "workflow"
    await store.close()
    store = await SqliteStore.open(tmp_path / "runs.db")
    await say(store, question, Answer(", yes"))
    second = await ran(store, graph, agent, inputs={"order": "A17"}, key="a17")
    assert second.run.status == "completed"
    assert shop.did == ["refund A17 4200, yes"]
    await store.close()


@pytest.mark.spec("CTL-APPR-01")
async def test_calls_of_workflows_and_of_agents_wait_in_one_record_each_with_its_own_run() -> None:
    shop, store = Shop(), MemoryStore()
    model = ScriptedModel([calls(("refund", {"order": "B2", "cents": 5})), "done"])
    talker = shop.agent(hitl_tools=["refund"]).changed(name="talker", model=model)
    spoken = await run_turn(new_engine(store), RunRequest(talker, "go", key="said"))
    flow = shop.agent(hitl_tools=["refund"])
    drawn_run = await ran(store, pay_back(), flow, inputs={"order": "A17"}, key="drawn")
    (said,), (paid,) = spoken.approvals, drawn_run.run.approvals
    assert (said.run_kind, paid.run_kind) == ("agent", "workflow")
    assert (said.turn_id, paid.turn_id) == (spoken.turn_id, drawn_run.run.turn_id), "each of its run, as a turn is one"
    assert type(said) is type(paid) and not any("workflow" in name for name in type(paid).model_fields)
    waiting = await approvals(new_engine(store))
    assert {each.id for each in waiting} == {said.id, paid.id}
    for each in waiting:
        await say(store, each, Approve())
    assert await approvals(new_engine(store)) == []
    assert (await run_turn(new_engine(store), RunRequest(talker, "go", key="said"))).status == "completed"
    assert (await ran(store, pay_back(), flow, inputs={"order": "A17"}, key="drawn")).run.status == "completed"
    assert shop.did == ["refund B2 5", "refund A17 4200"]


async def test_an_approval_that_is_rejected_fails_its_node(tmp_path: Path) -> None:
    shop = Shop()
    store = await SqliteStore.open(tmp_path / "runs.db")
    first = await ran(store, pay_back(ask=True), shop.agent(), inputs={"order": "A17"}, key="a17")
    await say(store, first.run.questions[0], Reject("not this one"))
    done = await resume_turn(new_engine(store), first.run.turn_id, [shop.agent()])
    assert done.status == "failed"
    row = await store.turn(done.turn_id)
    assert row is not None
    result = await workflow_result(store, row)
    assert statuses(WorkflowOutcome(done, result)) == {
        "agreed": "failed",
        "pay": "skipped",
        "find": "succeeded",
        "other": "succeeded",
    }
    assert shop.did == []
    await store.close()


async def test_a_tool_that_the_policy_forbids_fails_its_node() -> None:
    shop = Shop()
    done = await ran(MemoryStore(), pay_back(), shop.agent(policy=NO_MONEY), inputs={"order": "A17"})
    assert statuses(done) == {"find": "succeeded", "pay": "failed", "other": "succeeded"}
    assert shop.did == []


async def test_a_budget_ends_a_run_like_any_other_turn() -> None:
    shop = Shop()
    done = await ran(MemoryStore(), pay_back(), shop.agent(), inputs={"order": "A17"}, budget=Budget(tool_calls=2))
    assert (done.run.status, done.run.stop_reason) == ("incomplete", "tool_calls")
    assert done.result is not None and done.result.status == "cancelled"
    assert shop.did == []


async def test_a_long_result_is_passed_on_whole() -> None:
    shop = Shop()
    graph = drawn([node("long", "long", order="A1"), node("count", "count")], [edge("long", "count", "text")])
    done = await ran(MemoryStore(), graph, shop.agent())
    assert done.result is not None
    assert {each.id: each.output for each in done.result.nodes}["count"] == "200000"


async def test_a_path_that_leads_nowhere_fails_the_node_that_wanted_it() -> None:
    shop = Shop()
    graph = drawn(
        [node("find", "look_up", order="A1"), node("count", "count"), node("last", "look_up")],
        [edge("find", "count", "text", "result.title"), edge("count", "last", "order")],
    )
    done = await ran(MemoryStore(), graph, shop.agent())
    assert errors(done) == {"count": "unresolved_input", "last": "dependency_failed"}


async def test_what_an_edge_brings_is_held_to_the_tools_schema_by_the_gate() -> None:
    shop = Shop()
    graph = drawn(
        [node("find", "look_up", order="A1"), node("pay", "refund", order="A1")],
        [edge("find", "pay", "cents", "result.order")],
    )
    done = await ran(MemoryStore(), graph, shop.agent())
    assert statuses(done) == {"find": "succeeded", "pay": "failed"}
    assert shop.did == []


@pytest.mark.spec("LOOP-WF-13")
async def test_a_run_keeps_order_runs_side_by_side_and_is_held_to_what_calls_are_held_to(tmp_path: Path) -> None:
    shop = Shop()
    clerk = Agent("clerk", ScriptedModel(["Dear Ada"]))
    graph = drawn(
        [
            node("pay", "refund", order="A1"),
            node("letter", "clerk", "agent"),
            node("b", "meet", who="b"),
            node("a", "meet", who="a"),
            node("find", "look_up", order="A1"),
            node("agreed", "", "approval", question="?"),
            node("count", "count"),
        ],
        [
            edge("find", "letter", "input"),
            edge("find", "pay", "cents", "result.cents"),
            edge("a", "agreed", "show"),
            edge("agreed", "count", "text"),
        ],
    )
    store = await SqliteStore.open(tmp_path / "runs.db")
    agent = shop.agent(policy=NO_MONEY, budget=Budget(tool_calls=20))
    first = await ran(store, graph, agent, (clerk,), key="k")
    # `a` and `b` end only when both run; the approval waits and holds up nothing but what depends on it.
    assert first.run.status == "approval_required"
    await say(store, first.run.questions[0], Answer("yes"))
    done = await ran(store, graph, agent, (clerk,), key="k")
    assert statuses(done) == {name: "failed" if name == "pay" else "succeeded" for name in statuses(done)}
    assert shop.did == []  # the session's policy forbids it
    began = [e.fact.call_id for e in done.run.facts() if isinstance(e.fact.event, ToolStarted) and e.fact.level is None]
    for each in graph.edges:
        assert began.index(each.source) < began.index(each.target)
    (child,) = [e.fact for e in done.run.facts() if isinstance(e.fact.event, SubagentStarted)]
    assert (child.call_id, child.event.depth) == ("letter", 1)  # type: ignore[union-attr]
    # The budget of the run is the budget of its nodes.
    few = await ran(MemoryStore(), drawn([node(f"n{at}", "look_up", order="A") for at in range(3)]), shop.agent(),
                    budget=Budget(tool_calls=2))  # fmt: skip
    assert (few.run.stop_reason, few.run.tool_calls) == ("tool_calls", 2)
    await store.close()


class Verdict(BaseModel):
    score: int


async def test_an_agent_node_is_a_child_of_the_run_with_its_own_model_tools_and_answer() -> None:
    shop = Shop()
    seen: list[Any] = []

    def write(request: Any) -> Any:
        seen.append(request)
        return [calls(("count", {"text": "abc"})), "Dear Ada"][len(seen) - 1]

    writer = Agent("writer", ScriptedModel(write), "You write.", tools=[shop.tools[-1]])
    judge = Agent("judge", ScriptedModel([calls(("finish_subtask", {"score": 7}))]), output_type=Verdict)
    graph = drawn(
        [
            node("find", "look_up", order="A1"),
            node("letter", "writer", "agent", instructions="Two lines."),
            node("mark", "judge", "agent"),
            node("pay", "refund", order="A1"),
        ],
        [
            edge("find", "letter", "input"),
            edge("letter", "mark", "input"),
            edge("mark", "pay", "cents", "result.score"),
        ],
        outputs={"letter": {"node": "letter"}},
    )
    done = await ran(MemoryStore(), graph, shop.agent(), (writer, judge))
    assert done.result is not None and done.result.outputs == {"letter": "Dear Ada"}, done
    assert shop.did == ["refund A1 7"]
    assert next(iter(seen[0].history)).text.startswith("Two lines.\n\n")
    assert seen[0].instructions == "You write."
    started = [e.fact.event for e in done.run.facts() if isinstance(e.fact.event, SubagentStarted)]
    assert [(each.level_id, each.tool, each.depth) for each in started] == [
        ("letter", "agent/writer", 1),
        ("mark", "agent/judge", 1),
    ]


async def test_whoever_looks_at_a_call_is_told_the_agent_whose_call_it_is() -> None:
    told: list[tuple[str, str]] = []

    def asks(call: ProposedCall) -> bool:
        told.append(("predicate", call.agent))
        return False

    @tool(effect="pure", approval=asks)
    def weigh(ctx: RunContext[None]) -> int:
        """What it weighs."""
        told.append(("tool", ctx.agent))
        return 7

    def before(call: HookInput) -> None:
        told.append(("before", call.agent))

    @hook("post_tool_use")
    def after(call: HookInput) -> None:
        told.append(("after", call.agent))

    clerk = Agent("clerk", ScriptedModel([calls("weigh"), "7"]), tools=[weigh])
    boss = Agent("boss", ScriptedModel(["nobody asks"]), hooks=[before, after])
    graph = drawn([node("ask", "clerk", "agent", input="Weigh it.")])
    assert (await ran(MemoryStore(), graph, boss, (clerk,))).run.completed
    own = [each for each in told if each[1] != "boss"]
    assert own == [("predicate", "clerk"), ("before", "clerk"), ("tool", "clerk"), ("after", "clerk")]
    assert all(who != "tool" for who, agent in told if agent == "boss")


async def test_an_agent_node_keeps_its_hooks_its_deps_and_instructions_that_are_a_function() -> None:
    heard: list[str] = []

    @tool(effect="pure")
    def weigh(ctx: RunContext[str]) -> str:
        """What it weighs."""
        return ctx.deps

    def forbids(call: HookInput) -> HookVerdict:
        heard.append(call.tool)
        return HookVerdict("deny", "not today") if len(heard) > 1 else HookVerdict("continue")

    def says(request: Any) -> Any:
        return calls("weigh") if request.answered < 2 else request.instructions

    clerk: Agent[Any, str] = Agent(
        "clerk",
        ScriptedModel(says),
        lambda ctx: f"You are {ctx.agent}, with {ctx.deps}.",
        tools=[weigh],
        hooks=[forbids],
        deps=lambda context: "scales",
    )
    graph = drawn(
        [node("ask", "clerk", "agent", input="Weigh it."), node("other", "look_up", order="A")],
        outputs={"words": {"node": "ask"}},
    )
    done = await ran(MemoryStore(), graph, Shop().agent(), (clerk,))
    assert done.result is not None and done.result.outputs == {"words": "You are clerk, with scales."}
    assert heard == ["weigh", "weigh"], "it is heard about its own calls, and no others"
    ends = [e.fact.event for e in done.run.facts() if isinstance(e.fact.event, ToolResult | ToolFailed)]
    assert [(end.status, "scales" in end.item.text) for end in ends if end.tool_name == "weigh"] == [
        ("succeeded", True),
        ("denied", False),
    ]


async def test_an_agent_is_not_handed_more_than_a_fact_can_hold() -> None:
    shop = Shop()
    graph = drawn([node("long", "long", order="A1"), node("read", "clerk", "agent")], [edge("long", "read", "input")])
    done = await ran(MemoryStore(), graph, shop.agent(), (Agent("clerk", ScriptedModel(["never"])),))
    assert errors(done) == {"read": "input_too_long"}


@pytest.mark.parametrize("strict", ["session", "agent"])
async def test_an_agent_node_is_held_to_the_sessions_policy_and_to_its_own(strict: str) -> None:
    shop = Shop()
    pays = calls(("refund", {"order": "A1", "cents": 1}))
    payer = Agent(
        "payer", ScriptedModel([pays, "done"]), tools=shop.tools, policy=NO_MONEY if strict == "agent" else None
    )
    session = shop.agent(policy=NO_MONEY) if strict == "session" else shop.agent()
    graph = drawn([node("pay", "payer", "agent", input="Pay.")])
    assert statuses(await ran(MemoryStore(), graph, session, (payer,))) == {"pay": "succeeded"}
    assert shop.did == []
    # The inversion: where neither forbids it, it is done.
    free = Agent("payer", ScriptedModel([pays, "done"]), tools=shop.tools)
    await ran(MemoryStore(), graph, shop.agent(), (free,))
    assert shop.did == ["refund A1 1"]


async def test_what_an_agent_would_lose_as_a_node_is_refused_before_anything_runs() -> None:
    shop, store = Shop(), MemoryStore()
    graph = drawn([node("letter", "writer", "agent", input="x")])
    plans = Agent("writer", ScriptedModel(["x"]), planning_enabled=True)
    with pytest.raises(NotBuiltYet, match="the graph is the plan"):
        await ran(store, graph, shop.agent(), (plans,))
    needs = Agent("writer", ScriptedModel(["x"]), deps_type=Shop)
    with pytest.raises(DepsMissing, match="agent 'writer' needs deps"):
        await ran(store, graph, shop.agent(), (needs,))
    with pytest.raises(AgentMissing, match="needs the agent 'writer'"):
        system, agent = new_engine(store), shop.agent()
        registry = await workflow_registry(system, agent, (Agent("writer", ScriptedModel(["x"])),))
        await run_workflow(system, registry, graph, RunRequest(agent, ""))
    assert await store.turns() == []


async def test_wrong_inputs_and_graphs_run_nothing() -> None:
    shop, store = Shop(), MemoryStore()
    for given in ({}, {"order": 7}, {"order": "A1", "day": 1}):
        with pytest.raises(InvalidValue) as refused:
            await ran(store, pay_back(), shop.agent(), inputs=given)
        assert refused.value.code == "invalid_workflow_input"
    with pytest.raises(InvalidWorkflow, match="unknown_ref"):
        await ran(store, pay_back("nothing"), shop.agent(), inputs={"order": "A1"})
    assert await store.turns() == []


async def test_the_text_of_the_message_is_the_input_prompt() -> None:
    shop = Shop()
    graph = drawn(
        [node("count", "count")], [edge("$input", "count", "text", "prompt")], inputs={"prompt": {"type": "string"}},
        required_inputs=["prompt"],
    )  # fmt: skip
    done = await ran(MemoryStore(), graph, shop.agent(), prompt="hello")
    assert done.result is not None and done.result.nodes[0].output == "5"


async def test_a_turn_that_runs_no_workflow_has_no_result_of_one() -> None:
    store = MemoryStore()
    done = await run_turn(new_engine(store), RunRequest(Agent("a", ScriptedModel(["hi"])), "hi"))
    row = await store.turn(done.turn_id)
    assert row is not None
    with pytest.raises(TurnNotFound, match="runs no workflow"):
        await workflow_result(store, row)


async def test_killed_at_any_commit_it_goes_on_and_pays_once() -> None:
    """Every commit of the run, killed before and after it; taken up by another owner with the agents alone."""
    for before in (True, False):
        at = 0
        while True:
            at += 1
            shop = Shop()
            writer = Agent("writer", ScriptedModel(["Dear Ada"]))
            graph = pay_back().model_copy(
                update={
                    "nodes": (
                        *pay_back().nodes,
                        *drawn([node("letter", "writer", "agent")]).nodes,
                    ),
                    "edges": (*pay_back().edges, *drawn([node("a", "b")], [edge("find", "letter", "input")]).edges),
                }
            )
            memory = Memory()
            dying = Dying(memory, before=at if before else 0, after=0 if before else at)
            try:
                await ran(dying, graph, shop.agent(), (writer,), {"order": "A17"})
                break
            except Died:
                await dying.close()
            store = MemoryStore(memory)
            (row,) = await store.turns()
            done = await resume_turn(new_engine(store), row.turn_id, [shop.agent(), writer])
            await replays(store, row.turn_id)
            row = await store.turn(row.turn_id) or row
            outcome = WorkflowOutcome(done, await workflow_result(store, row))
            assert len(shop.did) <= 1
            if done.status == "completed":
                assert set(statuses(outcome).values()) == {"succeeded"}
                assert shop.did == ["refund A17 4200"]
            else:  # it was cut off inside the payment: nobody knows, and it is not tried again
                assert [each.tool for each in done.unknown] == ["refund"]
                assert statuses(outcome)["pay"] in ("failed", "cancelled")
        assert at > 4


async def test_a_word_to_a_run_asks_no_model() -> None:
    """The word comes when all nodes are done and before the end is written: the end is refused once and comes then."""

    class Spoken(MemoryStore):
        async def append(self, claim: Any, facts: Any, **how: Any) -> Any:
            ends = [fact for fact in facts if isinstance(fact.event, TurnCompleted)]
            if ends and not self.said:
                self.said = True
                words = UserItem(parts=(Text("wait"),))
                event = TurnInterjected(message_id="m2", item=words, said_by="ada")
                await self.admit(claim.agent_id, [Fact(event, ends[0].at, ends[0].thread_id, ends[0].turn_id)])
            return await super().append(claim, facts, **how)

        said = False

    def never(request: Any) -> Any:
        raise AssertionError("a model was asked")

    shop, store = Shop(), Spoken()
    boss = Agent("shop", ScriptedModel(never), tools=shop.tools)
    done = await ran(store, pay_back(), boss, inputs={"order": "A17"})
    assert store.said and set(statuses(done).values()) == {"succeeded"}


async def test_an_agents_own_tool_that_a_kill_cut_off_is_found_again_with_that_agent() -> None:
    """Its tool is not one of the run's: looked for there, the run would wait for it for ever."""
    cut_off = 0
    for at in range(1, 30):
        own = Shop().tools[-1]
        writer = Agent("writer", ScriptedModel([calls(("count", {"text": "abc"})), "Dear Ada"]), tools=[own])
        boss = Agent("shop", ScriptedModel(["nobody asks"]))
        graph = drawn([node("letter", "writer", "agent", input="a letter")])
        memory = Memory()
        dying = Dying(memory, before=0, after=at)
        try:
            await ran(dying, graph, boss, (writer,))
            break
        except Died:
            await dying.close()
        store = MemoryStore(memory)
        (row,) = await store.turns()
        facts = [entry.fact.event for entry in await store.read(row.agent_id)]
        cut_off += isinstance(facts[-1], ToolStarted) and facts[-1].tool_name == "count"
        done = await resume_turn(new_engine(store), row.turn_id, [boss, writer])
        assert done.status == "completed", (at, done.stop_reason, done.message)
        await replays(store, row.turn_id)
    assert cut_off, "no kill came while the tool ran"
