"""Messages that come together are looked at in one pass: what is said of them is what the rules say, one by one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.runs.store_facts import AGENT, NOON, created, ended, message, queued, started
from wakeful.contracts.content import BlobRef
from wakeful.contracts.envelope import Fact
from wakeful.contracts.events import AgentStateChanged
from wakeful.contracts.messages import ChannelOrigin, SystemOrigin
from wakeful.store.memory_tables import MemoryTables
from wakeful.store.rows import Book
from wakeful.store.tables.new_messages import is_new_message, needs_of_new_messages, rows_of_new_messages

THREADS = ("main", "second", "check:timer_1", "quiet")
SAID = st.fixed_dictionaries(
    {},
    optional={
        "priority": st.sampled_from(("interject", "next", "normal", "background")),
        "message_kind": st.sampled_from(("operator_prompt", "system_tick", "channel_event")),
        "origin": st.sampled_from((SystemOrigin(subsystem="work"), ChannelOrigin(channel_id="mail", sender_id="ann"))),
        "authority_class": st.sampled_from(("operator_instruction", "runtime_instruction", "external_evidence")),
        "admission_context": st.sampled_from(("local_process", "runtime_owned", "control_authenticated")),
        "expires_at": st.just(NOON + 1_000),
    },
)
MESSAGES = st.lists(st.tuples(st.sampled_from(THREADS), st.integers(-5, 5), SAID), min_size=1, max_size=12)


def book_of(*control: str) -> Book:
    """An agent with threads in which something is open, and one in which nothing is."""
    book = Book(AGENT, MemoryTables())
    facts = [created(), *(queued(f"first of {thread}", thread=thread) for thread in THREADS[:3])]
    facts += [message("t9", thread="quiet"), started("t9"), ended("t9")]
    facts = [Fact(each.event, each.at, "quiet", each.turn_id) if each.turn_id else each for each in facts]
    facts += [Fact(AgentStateChanged(control=each, changed_by="ann"), NOON) for each in control]  # type: ignore[arg-type]
    book.read_again(facts, 0)
    return book


def told(book: Book, facts: list[Fact]) -> Any:
    found = book.tables.fetch(needs_of_new_messages(AGENT, facts))
    return rows_of_new_messages(facts, 50, AGENT, found)


def new(*given: tuple[str, int, dict[str, Any]]) -> list[Fact]:
    return [
        queued(f"m{number:02}", at=NOON + after, thread=thread, **fields)
        for number, (thread, after, fields) in enumerate(given)
    ]


@given(MESSAGES, st.sampled_from(((), ("paused",), ("paused", "running"))))
def test_what_is_said_in_one_pass_is_what_the_rules_say_one_by_one(
    given: list[tuple[str, int, dict[str, Any]]], control: tuple[str, ...]
) -> None:
    book, facts = book_of(*control), new(*given)
    assert all(is_new_message([fact]) for fact in facts)
    rows = told(book, facts)
    if any(fact.thread_id == "quiet" for fact in facts):
        assert rows is None, "the first message of a thread in which nothing is open makes it due"
    else:
        assert rows == book.changes(facts, 50).rows


@pytest.mark.parametrize(
    ("control", "said"),
    [(("stopped",), {}), ((), {"workflow_ref": BlobRef(digest="sha256:1", size=1)})],
)
def test_what_is_out_of_the_ordinary_is_left_to_the_rules(control: tuple[str, ...], said: dict[str, Any]) -> None:
    facts = new(("main", 0, {}), ("main", 1, said))
    assert told(book_of(), facts[:1]) is not None
    assert told(book_of(*control), facts) is None


def test_an_agent_of_no_runtime_and_a_thread_that_is_new_are_left_to_the_rules() -> None:
    assert told(Book(AGENT, MemoryTables()), new(("main", 0, {}))) is None
    assert told(book_of(), new(("main", 0, {}), ("never seen", 0, {}))) is None


def test_with_a_key_or_a_turn_or_another_fact_it_is_no_new_message() -> None:
    assert is_new_message([queued("m1")])
    assert not is_new_message([queued("m1", key="k")])
    assert not is_new_message([message("t1")])
    assert not is_new_message([queued("m1"), queued("m2")])
    assert not is_new_message([created()])
