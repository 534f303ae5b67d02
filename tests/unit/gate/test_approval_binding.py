"""An approval is for this tool as it was declared, these arguments and this directory, and for nothing else.

Whatever is changed between the decision and the call: nothing runs under the old approval.
"""

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from kit.runs.asked_runs import agent, asked, check_replay, say
from kit.runs.engine_runs import Died, Dying, of_kind
from wakeful import Always, Approve, Edit, Reject, RunContext, Tool, run
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.errors import StoreDamaged, ToolAsks
from wakeful.contracts.events import ActionRequired, ActionResolved, PermissionEvaluated, ToolFailed
from wakeful.contracts.tools import ToolDeclaration
from wakeful.gate.approval_binding import bind
from wakeful.store.memory import Memory, MemoryStore
from wakeful.testing.wrapped_store import WrappedStore
from wakeful.tools.call_runner import CallHandle, begin

ARGUMENTS = {"order": "A17", "cents": 4200}
SCHEMA = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "cents": {"type": "integer"}},
    "required": ["order", "cents"],
    "additionalProperties": False,
}
DECLARED = ToolDeclaration(name="pay", description="Pay.", input_schema=SCHEMA, effect="keyed")
HERE = "/srv/shop"
CHANGES = 500


def test_a_field_of_a_declaration_that_says_nothing_new_leaves_a_binding_as_it_was() -> None:
    spelled_out = ToolDeclaration(**DECLARED.model_dump())
    assert spelled_out.model_fields_set > DECLARED.model_fields_set
    assert bind(b"k", spelled_out, ARGUMENTS, HERE) == bind(b"k", DECLARED, ARGUMENTS, HERE)
    untrusted = DECLARED.model_copy(update={"untrusted": True})
    assert bind(b"k", untrusted, ARGUMENTS, HERE) != bind(b"k", DECLARED, ARGUMENTS, HERE)


class Pay(Tool[Any]):
    """A tool about which everything can change between two runs."""

    def __init__(
        self, ran: list[Any], declared: ToolDeclaration = DECLARED, directory: str | None = "/srv/shop"
    ) -> None:
        self.ran = ran
        self._declared = declared
        self._directory = directory

    @property
    def declaration(self) -> ToolDeclaration:
        return self._declared

    @property
    def name(self) -> str:
        return "pay"

    @property
    def needs_deps(self) -> bool:
        return False

    def working_directory(self, arguments: dict[str, Any]) -> str | None:
        return self._directory

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        def work(**given: Any) -> str:
            self.ran.append((given, self._declared, self._directory))
            return "paid"

        return begin(work, False, (), arguments)


def support(ran: list[Any], *changed: Any) -> Any:
    return agent([Pay(ran, *changed)], (("pay", ARGUMENTS),), hitl_tools=["pay"])


# --- what may have become of it ------------------------------------------------------------------------------------


def declarations(luck: Random) -> ToolDeclaration:
    """The same tool, declared in another way."""
    number = luck.randint(0, 10**9)
    schemas = [
        {**SCHEMA, "properties": {**SCHEMA["properties"], f"more{number}": {"type": "string"}}},  # type: ignore[dict-item]
        {**SCHEMA, "properties": {**SCHEMA["properties"], "cents": {"type": "integer", "maximum": 5000 + number}}},  # type: ignore[dict-item]
        {**SCHEMA, "properties": {**SCHEMA["properties"], "order": {"type": "string", "description": f"{number}"}}},  # type: ignore[dict-item]
        {**SCHEMA, "required": ["order"]},
        {**SCHEMA, "additionalProperties": True},
        {**SCHEMA, "title": f"v{number}"},
        {**SCHEMA, "required": ["cents", "order"]},
    ]
    fields: dict[str, list[Any]] = {
        "description": ["", f"Pay, v{number}.", "Pay. ", "pay."],
        "input_schema": schemas,
        "effect": ["pure", "irreversible"],
        "timeout": [1.0 + number],
        "retries": [0, 1, 3],
        "locks": [("a",), (f"lock{number}",)],
        "parallel_safe": [False],
        "reads_private": [True],
        "changes_state": [True, False],
        "leaves_machine": [True],
        "external": [True],
        "child_safe": [False],
        "sensitive_parameters": [("order",), ("cents",)],
        "permission_class": ["safe", "network", "secrets", "execute", "workspace_write", "external_write"],
        "capabilities": [("write",), (f"custom:v{number}",)],
        "categories": [(f"v{number}",)],
        "runtime_owner": ["mcp_server", "client"],
        "interrupt_behavior": ["block"],
        "answered_by": ["client"],
    }
    chosen = luck.sample(sorted(fields), luck.randint(1, 3))
    return DECLARED.model_copy(update={name: luck.choice(fields[name]) for name in chosen})


def directories(luck: Random) -> str | None:
    return luck.choice(
        [None, "", "/", "/srv/shop/", "/srv/shop2", "/srv", "srv/shop", "/srv/shop/../x", str(luck.random())]
    )


def arguments(luck: Random) -> dict[str, Any]:
    wrong: list[dict[str, Any]] = [
        {"order": "A17", "cents": luck.randint(1, 10**6)},
        {"order": luck.choice(["a17", "A17 ", "A1", "", "B2"]), "cents": 4200},
        {"order": "A17", "cents": -4200},
    ]
    return luck.choice(wrong)


DECISIONS = (Approve(), Edit({"order": "B2", "cents": 1}), Always("call"), Always("tool"))


@pytest.mark.parametrize("part", range(10))
async def test_nothing_that_changed_after_the_decision_runs_under_it(part: int) -> None:
    for seed in range(part, CHANGES, 10):
        luck = Random(seed)
        ran: list[Any] = []
        store = MemoryStore()
        first = await asked(support(ran), store)
        (approval,) = first.approvals
        declared, directory = DECLARED, "/srv/shop"
        what = luck.choice(["declaration", "directory", "arguments", "both"])
        decision = luck.choice(DECISIONS)
        if what == "arguments":
            # Somebody who can write to the store and does not have its secret puts other arguments into a decision.
            binding = luck.choice(["hmac-sha256:" + "0" * 64, _asked(first).binding, None])
            forged = ActionResolved(
                action_id=approval.id,
                tool_name="pay",
                status="approved",
                decision="edit",
                resolver="ada",
                arguments=arguments(luck),
                binding=binding,
            )
            fact = Fact(forged, int(approval.requested_at * 1e6) + 1, "main", first.turn_id, 1, "call_1_1", approval.id)
            await store.admit(first.agent_id, [fact])
        else:
            await say(store, approval, decision)
            if what in ("declaration", "both"):
                declared = declarations(luck)
            if what in ("directory", "both"):
                directory = directories(luck)
        changed = support(ran, declared, directory)
        result = await run(changed, "go", store=store, key="k")
        assert ran == [], f"seed {seed}: {what} ran under the old approval"
        await check_replay(store, result)
        if result.status == "approval_required":
            (new,) = result.approvals
            assert new.id != approval.id and "what was approved is not what would run now" in new.reason
            await say(store, new, Reject("not like this"))
            result = await run(changed, "go", store=store, key="k")
            await check_replay(store, result)
        assert result.status == "completed", f"seed {seed}: {result.status} {result.message}"
        (end,) = of_kind(result, ToolFailed)
        assert end.effects == "none" and ran == []


def _asked(result: Any) -> ActionRequired:
    (event,) = of_kind(result, ActionRequired)
    assert isinstance(event, ActionRequired)
    return event


@pytest.mark.parametrize("decision", DECISIONS, ids=str)
async def test_what_did_not_change_runs_once(decision: Any) -> None:
    ran: list[Any] = []
    store = MemoryStore()
    first = await asked(support(ran), store)
    await say(store, first.approvals[0], decision)
    result = await run(support(ran, DECLARED.model_copy(), "/srv/shop"), "go", store=store, key="k")
    expected = {"order": "B2", "cents": 1} if isinstance(decision, Edit) else ARGUMENTS
    assert (result.status, [given for given, *_ in ran]) == ("completed", [expected])
    await check_replay(store, result)


class Fits(WrappedStore):
    """A store whose records say that they were made for whatever is about to run: as if nothing were bound."""

    def __init__(self, inner: MemoryStore, binding: str) -> None:
        super().__init__(inner)
        self._binding = binding

    async def read(self, agent_id: str, **which: Any) -> list[StoredFact]:
        found = await super().read(agent_id, **which)
        return [entry._replace(fact=self._fitting(entry.fact)) for entry in found]

    def _fitting(self, fact: Fact) -> Fact:
        if not isinstance(fact.event, ActionRequired):
            return fact
        return replace(fact, event=fact.event.model_copy(update={"binding": self._binding}))


@pytest.mark.parametrize("what", ["declaration", "directory"])
async def test_without_the_binding_the_changed_call_would_run(what: str) -> None:
    """The inversion: nothing else stops it."""
    ran: list[Any] = []
    store = MemoryStore()
    first = await asked(support(ran), store)
    await say(store, first.approvals[0], Approve())
    declared = DECLARED.model_copy(update={"description": "Pay twice."}) if what == "declaration" else DECLARED
    directory = "/elsewhere" if what == "directory" else "/srv/shop"
    fits = Fits(store, bind(store.secret, declared, ARGUMENTS, directory))
    result = await run(support(ran, declared, directory), "go", store=fits, key="k")
    assert (result.status, len(ran)) == ("completed", 1)


def test_a_binding_cannot_be_made_without_the_secret_and_says_nothing_about_the_arguments() -> None:
    one = bind(b"secret", DECLARED, ARGUMENTS, "/srv/shop")
    assert one == bind(b"secret", DECLARED.model_copy(), dict(reversed(ARGUMENTS.items())), "/srv/shop")
    others = {
        bind(b"other", DECLARED, ARGUMENTS, "/srv/shop"),
        bind(b"secret", DECLARED.model_copy(update={"retries": 3}), ARGUMENTS, "/srv/shop"),
        bind(b"secret", DECLARED, {**ARGUMENTS, "cents": "4200"}, "/srv/shop"),
        bind(b"secret", DECLARED, ARGUMENTS, None),
        bind(b"secret", DECLARED, {**ARGUMENTS, "cents": 4200.5}, "/srv/shop"),
    }
    assert one not in others and len(others) == 5 and "A17" not in one


async def test_a_second_change_is_asked_about_again_and_the_newest_answer_counts() -> None:
    ran: list[Any] = []
    store = MemoryStore()
    first = await asked(support(ran), store)
    await say(store, first.approvals[0], Approve())
    second = DECLARED.model_copy(update={"description": "Pay, but differently."})
    asked_again = await run(support(ran, second), "go", store=store, key="k")
    (new,) = asked_again.approvals
    await say(store, new, Approve())
    assert (await run(support(ran), "go", store=store, key="k")).status == "approval_required", "back to what it was"
    assert ran == []
    (third,) = (await run(support(ran), "go", store=store, key="k")).approvals
    await say(store, third, Approve())
    result = await run(support(ran), "go", store=store, key="k")
    assert (result.status, len(ran)) == ("completed", 1)
    verdict = of_kind(result, PermissionEvaluated)[-1]
    assert (verdict.decision, verdict.approval_action_id) == ("allow", third.id)
    await check_replay(store, result)


@pytest.mark.parametrize("changed", ["declaration", "directory", "nothing"])
async def test_a_call_that_was_cut_off_after_its_approval_is_not_run_again_as_another(changed: str) -> None:
    """Keyed: it may be run again. Not as something nobody let through."""
    ran: list[Any] = []
    memory = Memory()
    first = await asked(support(ran), MemoryStore(memory))
    await say(MemoryStore(memory), first.approvals[0], Approve())
    with pytest.raises(Died):  # its intent is on disk, its outcome is not
        await run(support(ran), "go", store=Dying(memory, before=2), key="k")
    assert len(ran) == 1
    declared = DECLARED.model_copy(update={"description": "Pay twice."}) if changed == "declaration" else DECLARED
    directory = "/elsewhere" if changed == "directory" else "/srv/shop"
    store = MemoryStore(memory)
    result = await run(support(ran, declared, directory), "go", store=store, key="k")
    assert result.status == "completed"
    if changed == "nothing":
        assert len(ran) == 2 and not result.unknown
    else:
        assert len(ran) == 1 and "no longer what was approved" in result.unknown[0].reason
    await check_replay(store, result)


async def test_stored_bytes_that_were_changed_are_found_before_anything_runs() -> None:
    ran: list[Any] = []
    memory = Memory()
    first = await asked(support(ran), MemoryStore(memory))
    await say(MemoryStore(memory), first.approvals[0], Approve())
    log, firsts = memory.agents[first.agent_id].log, memory.agents[first.agent_id].firsts
    luck = Random(1)
    for row, seq in enumerate(firsts):
        for _ in range(5):
            original = log[row]
            header, body, digest = original
            place = luck.randrange(len(body))
            forged = bytes([*body[:place], body[place] ^ (1 << luck.randrange(8)), *body[place + 1 :]])
            log[row] = (header, forged, digest)
            store = MemoryStore(memory)
            assert [(found.agent_id, found.seq) for found in await store.verify()] == [(first.agent_id, seq)]
            if seq >= first.facts()[0].seq:  # what stands before is none of this turn's
                with pytest.raises(StoreDamaged):
                    await run(support(ran), "go", store=store, key="k")
            await store.close()
            log[row] = original
    assert ran == []
    assert (await run(support(ran), "go", store=MemoryStore(memory), key="k")).status == "completed"
    assert len(ran) == 1


async def test_what_a_person_edited_is_what_they_are_asked_about_anew_and_what_then_runs() -> None:
    ran: list[Any] = []
    store = MemoryStore()
    here, there = (agent([Pay(ran, directory=place)], (("pay", ARGUMENTS),), hitl_tools=["pay"]) for place in "ab")
    first = await asked(here, store)
    await say(store, first.approvals[0], Edit({"order": "A17", "cents": 7}))
    anew = await asked(there, store)
    assert (anew.approvals[0].arguments, ran) == ({"order": "A17", "cents": 7}, [])
    await say(store, anew.approvals[0], Approve())
    result = await run(there, "go", store=store, key="k")
    await check_replay(store, result)
    assert (result.output, [given["cents"] for given, *_ in ran]) == ("done", [7])


class Lost(Pay):
    """Asks when it runs, and cannot say any more by then where it works."""

    begun = False

    def working_directory(self, arguments: dict[str, Any]) -> str | None:
        if self.begun:
            raise OSError("the folder is gone")
        return HERE

    def start(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> CallHandle:
        async def work(**given: Any) -> str:
            self.begun = True
            raise ToolAsks("Are you sure?")

        return begin(work, True, (), arguments)


async def test_a_question_that_cannot_be_put_is_a_failure_and_not_a_wait_without_an_end() -> None:
    clerk = agent([Lost([])], (("pay", ARGUMENTS),))
    result = await asyncio.wait_for(run(clerk, "go", store=MemoryStore()), 60)
    (failed,) = of_kind(result, ToolFailed)
    assert result.output == "done" and "the folder is gone" in failed.message
