"""Long-term memory in chats: only when the message says so, bounded, for this turn alone, and named in the log."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls
from wakeful import Agent, TextFiles
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.budgets import Budget
from wakeful.contracts.events import (
    ContextResolved,
    KnowledgeRetrieved,
    MemoryUsed,
    ModelRequested,
    ToolCatalogResolved,
    TurnStarted,
)
from wakeful.contracts.memory import RECALLED_TOKENS
from wakeful.decisions.prompt_size import tokens
from wakeful.hosts.chat import run_chat_agent
from wakeful.ports import ModelRequest
from wakeful.service.queries.history import messages
from wakeful.store.memory import MemoryStore
from wakeful.testing import scripted


class Chat:
    """A server with one agent that remembers, and what its model was asked."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        monkeypatch.setenv("WAKEFUL_HOME", str(folder))
        self.memory = folder / "agents" / "helper" / "memory"
        self.memory.mkdir(parents=True)
        self.store = MemoryStore()
        self.agent = Agent("helper", "scripted:demo", memory=True, **options)
        self.asked: list[ModelRequest] = []

    async def say(self, content: str, *, memory: bool, user: str = "ann", thread: str = "t1") -> list[Any]:
        """Say it; returns the turn's events."""

        def reply(request: ModelRequest) -> object:
            self.asked.append(request)
            if "look" in content and request.answered == 0:
                return calls(("memory_search", {"query": "nine"}))
            return f"I heard: {content}"

        engine = new_engine(self.store)
        done = await run_chat_agent(
            _with_model(engine, scripted(reply)),
            self.agent,
            thread_id=thread,
            user_id=user,
            provider="scripted",
            model="x",
            chat_context=None,
            registry=None,
            content=content,
            collections=[each.name for each in self.agent.collections if not isinstance(each, str)],
            memory_enabled=memory,
            request_seq=1,
            send_message=lambda message: None,
        )
        return [entry.fact.event for entry in await self.store.read("helper", turn_id=done.turn_id)]

    @property
    def prompt(self) -> str:
        return self.asked[-1].frame.system_prompt

    @property
    def tools(self) -> list[str]:
        return [tool.name for tool in self.asked[-1].tools]


def _with_model(engine: Any, model: Any) -> Any:
    from dataclasses import replace

    return replace(engine, resolve_model=lambda choice: model)


@pytest.mark.spec("LOOP-MEM-05", "STD-CTX-02")
async def test_memory_is_searched_only_when_the_message_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = Chat(tmp_path, monkeypatch)
    (chat.memory / "self.md").write_text("# Ferry\nThe ferry leaves at nine.\n\n# Cats\nCats sleep all day.\n")
    events = await chat.say("When does the ferry leave?", memory=False)
    assert "ferry leaves" not in chat.prompt and chat.tools == []
    assert not any(event.kind.startswith("memory.") for event in events), "nothing is searched, shown or kept"
    events = await chat.say("When does the ferry leave?", memory=True)
    assert "# Memories\n" in chat.prompt and "The ferry leaves at nine." in chat.prompt
    assert "Cats sleep" not in chat.prompt and chat.tools == ["memory_search", "memory_get"]
    (used,) = [event for event in events if isinstance(event, MemoryUsed)]
    (context,) = [event for event in events if isinstance(event, ContextResolved)]
    assert (used.use, context.memory_refs) == ("recall", used.entries)
    (ref,) = context.memory_refs
    assert ref.kind == "memory" and ref.ref.startswith("mem_") and f"[{ref.ref}]" in chat.prompt
    await chat.say("Thanks.", memory=False)
    assert "ferry leaves" not in chat.prompt, "it was for that turn alone"
    assert not any("ferry leaves" in item.text for item in chat.asked[-1].history)


async def test_what_is_brought_along_is_bounded_and_of_the_person_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W34: at most five entries and 2,000 tokens, the agent's own and this person's."""
    chat = Chat(tmp_path, monkeypatch)
    sections = [f"# Part {number}\n" + f"The ferry has deck {number}. " * 100 for number in range(9)]
    (chat.memory / "self.md").write_text("\n".join(sections))
    (chat.memory / "operator.md").write_text("The ferry belongs to the operator.\n")
    for number in range(12):
        await chat.say(f"Bob takes the ferry {number}", memory=True, user="bob", thread="of-bob")
    events = await chat.say("ferry?", memory=True)
    (used,) = [event for event in events if isinstance(event, MemoryUsed)]
    assert 1 <= len(used.entries) <= 5
    assert sum(entry.tokens or 0 for entry in used.entries) <= RECALLED_TOKENS
    shown = chat.prompt[chat.prompt.index("# Memories") :]
    assert tokens(len(shown)) <= RECALLED_TOKENS
    assert "Bob" not in shown and "belongs to the operator" not in shown
    assert "Bob" not in chat.prompt, "working memory of another person's turns is shown to nobody else"
    await chat.say("And?", memory=True, user="bob", thread="of-bob")
    assert "Bob takes the ferry" in chat.prompt


@pytest.mark.spec("LOOP-RUN-02")
async def test_a_turn_is_put_together_in_this_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("The ferry is blue.\n")
    chat = Chat(tmp_path, monkeypatch, collections=[TextFiles("docs", docs)])
    (chat.memory / "self.md").write_text("The ferry leaves at nine.\n")
    await chat.say("Good day.", memory=True)
    events = await chat.say("The ferry? Please look.", memory=True)
    history = [item.text for item in chat.asked[-1].history]
    assert history[:2] == ["Good day.", "I heard: Good day."], "the thread's history from the store"
    ended = events[-1]
    (started,) = [event for event in events if isinstance(event, TurnStarted)]
    assert started.limits == Budget(profile="interactive").limits(), "a budget of its own"
    kinds = [type(event) for event in events]
    assert kinds.index(ContextResolved) < kinds.index(KnowledgeRetrieved) < kinds.index(MemoryUsed)
    assert kinds.index(MemoryUsed) < kinds.index(ToolCatalogResolved) < kinds.index(ModelRequested)
    assert ended.kind == "turn.completed"
    last = (await messages(chat.store, "t1", "helper", 100, None, keys=frozenset()))[-1]
    assert (last.content, last.status) == ("I heard: The ferry? Please look.", "completed")
    assert last.execution_tree is not None, "the answer is stored with what was done for it"
