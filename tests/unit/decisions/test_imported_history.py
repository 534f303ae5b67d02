"""Earlier conversation that a caller brings along stands before the message that opened the turn."""

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, UserItem
from wakeful.contracts.envelope import Fact, StoredFact
from wakeful.contracts.events import HistoryImported, MessageAdmitted
from wakeful.decisions.evolve.facts import evolve
from wakeful.decisions.state import TurnState
from wakeful.views.conversation_export import export

BEFORE = (UserItem(parts=(Text("one"),)), AssistantItem(parts=(Text("two"),)))
FACTS = [
    Fact(MessageAdmitted(message_id="m", item=UserItem(parts=(Text("three"),))), 1, "main", "t"),
    Fact(HistoryImported(items=BEFORE, count=2), 2, "main", "t"),
]


def test_the_conversation_has_it_before_the_message_although_the_log_has_it_after() -> None:
    state = TurnState()
    for fact in FACTS:
        evolve(state, fact)
    assert [item.text for item in state.conversation.items] == ["one", "two", "three"]


def test_an_export_has_the_same_order() -> None:
    exported = export([StoredFact("a", seq, fact) for seq, fact in enumerate(FACTS, 1)], None)
    assert [message.content for message in exported.messages] == ["one", "two", "three"]
