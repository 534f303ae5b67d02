"""langgraph: the usual two nodes, model and `ToolNode`, on a scripted chat model.

Without a checkpointer; with the SQLite one as it comes (durability `async`: rounds run ahead of their checkpoints);
with durability `sync` (a checkpoint is written before the next step); and with a delta channel for the messages.
Opening the database is part of the turn, as it is for wakeful.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import PrivateAttr

from contestants import Turn
from contestants.work import FINAL, PROMPT, TOOL, add, arguments


def _extend(messages: list[AnyMessage], writes: Sequence[Any]) -> list[AnyMessage]:
    return [*messages, *chain.from_iterable(w if isinstance(w, list) else [w] for w in writes)]


class DeltaState(TypedDict):
    """The state of `MessagesState`, stored as what each step added."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_extend)]


class Scripted(BaseChatModel):
    """Gives the next reply of a list."""

    _replies: Iterator[ChatResult] = PrivateAttr()

    def __init__(self, replies: list[ChatResult]) -> None:
        super().__init__()
        self._replies = iter(replies)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return next(self._replies)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return next(self._replies)


def _script(rounds: int) -> list[ChatResult]:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    messages = [
        AIMessage(
            content="",
            tool_calls=[{"name": TOOL, "args": arguments(i), "id": f"call_{i}"}],
            usage_metadata=usage,
        )
        for i in range(rounds)
    ]
    messages.append(AIMessage(content=FINAL, usage_metadata=usage))
    return [ChatResult(generations=[ChatGeneration(message=m)]) for m in messages]


def _builder(rounds: int, state: type[Any]) -> StateGraph[Any]:
    model = Scripted(_script(rounds))

    async def ask(state: Any) -> dict[str, list[AnyMessage]]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(state)
    builder.add_node("model", ask)
    builder.add_node("tools", ToolNode([tool(add)]))
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", tools_condition)
    builder.add_edge("tools", "model")
    return builder


async def _invoke(
    builder: StateGraph[Any], rounds: int, checkpointer: BaseCheckpointSaver[str] | None, **how: Any
) -> str:
    graph = builder.compile(checkpointer=checkpointer)
    config: RunnableConfig = {"configurable": {"thread_id": "bench"}, "recursion_limit": 2 * rounds + 10}
    state = await graph.ainvoke({"messages": [HumanMessage(PROMPT)]}, config, **how)
    return str(state["messages"][-1].content)


def memory(rounds: int, folder: Path) -> Turn:
    builder = _builder(rounds, MessagesState)

    async def turn() -> str:
        return await _invoke(builder, rounds, None)

    return turn


def _durable(rounds: int, folder: Path, state: type[Any], **how: Any) -> Turn:
    builder = _builder(rounds, state)

    async def turn() -> str:
        async with AsyncSqliteSaver.from_conn_string(str(folder / "runs.db")) as saver:
            return await _invoke(builder, rounds, saver, **how)

    return turn


def sqlite(rounds: int, folder: Path) -> Turn:
    return _durable(rounds, folder, MessagesState)


def sqlite_sync(rounds: int, folder: Path) -> Turn:
    return _durable(rounds, folder, MessagesState, durability="sync")


def sqlite_delta(rounds: int, folder: Path) -> Turn:
    return _durable(rounds, folder, DeltaState)
