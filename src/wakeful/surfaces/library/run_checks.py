"""Options of a run that could have no effect, refused before anything runs, with the line to add.

A run without a store is gone when it ends: nobody can repeat it by its key, go on with its thread or answer its
approval later.
"""

import inspect
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from wakeful.contracts.budgets import Budget
from wakeful.contracts.content import File, Image, Text
from wakeful.contracts.errors import InvalidConfig, InvalidRequest, InvalidValue, StoreProblem
from wakeful.contracts.tools import Principal
from wakeful.contracts.workflows import WorkflowGraph
from wakeful.service import Agent, AgentTool

if TYPE_CHECKING:
    from wakeful.service import Engine, RunRequest, Store
    from wakeful.service.run_result import RunResult

StorePlace: TypeAlias = "Store | str | PathLike[str] | None"
"""A path to a SQLite file, a store, or None for memory."""
ADD_STORE = 'add store="runs.db"'
ADD_EITHER = 'add store="runs.db" and decide later (`wakeful approvals`), or approver=... and decide at once'
ADD_FOR_CLIENT = 'add store="runs.db", answer with `submit_result` and go on with `resume`'


def check_store(
    agent: Agent[Any, Any],
    store: StorePlace,
    *,
    key: str | None,
    thread: str | None,
    approver: Any,
    graph: WorkflowGraph | None = None,
) -> None:
    """Raises InvalidRequest for a run without a store whose options need one. `agent` is as it would run."""
    if not _is_memory(store):
        return
    for name, value, what in (
        ("key", key, "a run that is only in memory cannot be found again by its key"),
        ("thread", thread, "a conversation that is only in memory ends with this run"),
    ):
        if value is not None:
            raise InvalidRequest(f"run({name}={value!r}) without a store: {what}", ADD_STORE)
    if agent.spend_windows:
        raise InvalidRequest(
            f"spend_windows of agent {agent.name!r} without a store: they count what earlier runs have spent, and a "
            "run that is only in memory knows of none",
            f"{ADD_STORE}, or limit this run alone with budget=Budget(usd=...)",
        )
    if approver is not None:
        return
    what = _needs_a_person(agent)
    if not what and graph is not None:
        node = next((node.id for node in graph.nodes if node.kind == "approval"), None)
        what = f"the node {node!r} of the workflow {graph.name!r} needs approval" if node is not None else ""
    if what:
        raise InvalidRequest(f"{what}, and this run has no store and no approver: nobody could decide", ADD_EITHER)


def check_values(budget: Any, principal: Any, approver: Any) -> None:
    """Raises InvalidConfig for values of another kind than the run could use."""
    if budget is not None and not isinstance(budget, Budget):
        raise InvalidConfig(f"run(budget={budget!r}) is not a Budget", "write Budget(model_calls=8, seconds=60)")
    if principal is not None and not isinstance(principal, Principal):
        raise InvalidConfig(f"run(principal={principal!r}) is not a Principal", 'write Principal(id="ann")')
    if approver is not None and not (callable(approver) and _takes_one(approver)):
        raise InvalidConfig(
            f"run(approver={approver!r})",
            "give a function, async or not, that takes an Approval and returns True or False",
        )


def check_prompt(prompt: Any) -> None:
    """Raises InvalidRequest for a prompt that says nothing, which most models refuse, InvalidValue for one of another
    type."""
    if (isinstance(prompt, str) and not prompt.strip()) or (isinstance(prompt, list | tuple) and not prompt):
        raise InvalidRequest(f"the prompt is empty: {prompt!r}", 'say something: run(agent, "hello")')
    if isinstance(prompt, str | Text | Image | File):
        return
    if not isinstance(prompt, list | tuple):
        raise _no_prompt("prompt", prompt)
    for place, piece in enumerate(prompt):
        if not isinstance(piece, str | Text | Image | File):
            raise _no_prompt(f"prompt[{place}]", piece)


def _no_prompt(path: str, given: Any) -> InvalidValue:
    message = isinstance(given, dict) and "role" in given
    return InvalidValue(
        "invalid_prompt",
        path,
        f"{given!r:.80} is of type {type(given).__name__}",
        "pass earlier messages as history=[...]" if message else "give a text, a Text, an Image or a File, or a list",
    )


def existing_store(store: StorePlace) -> StorePlace:
    """A store that turns can be found in. Raises InvalidRequest without one, StoreProblem where there is no file."""
    if _is_memory(store):
        raise InvalidRequest("no store was named, and memory holds no earlier turns", 'name it: "runs.db"')
    if isinstance(store, str | PathLike) and not Path(fspath(store)).exists():
        from wakeful.bootstrap.stores import check_not_lost

        check_not_lost(fspath(store))
        raise StoreProblem(f"there is no store {fspath(store)}", "name the one that the turns were run with")
    return store


async def settled(
    engine: "Engine", result: "RunResult[Any]", request: "RunRequest", store: StorePlace
) -> "RunResult[Any]":
    """A run that is only in memory cannot wait. One that does for a provider fails, any other says what would help."""
    if result.waiting_for == "provider" and _is_memory(store):
        from wakeful.service.commands.turns import give_up_waiting

        result = await give_up_waiting(engine, result, request)
        result.message = f"{result.message}; this run has no store to wait in: {ADD_STORE}"
        return result
    advice = {"approval_required": ADD_EITHER, "runtime_tool_pending": ADD_FOR_CLIENT}.get(result.status)
    if advice is not None and _is_memory(store):
        result.message = f"{result.message}, and this run has no store to wait in: {advice}"
    return result


def _is_memory(store: Any) -> bool:
    return store is None or store == ":memory:"


def _needs_a_person(agent: Agent[Any, Any], of: str = "") -> str:
    """What of an agent, or of the agents that are its tools, always needs a person; empty: nothing."""
    asking = next((tool.name for tool in agent.tools if tool.always_asks), None)
    if asking is not None:
        return f"the tool {asking!r}{of} needs approval (approval=True)"
    if agent.hitl_tools:
        return f"hitl_tools={list(agent.hitl_tools)!r}{of} need approval"
    children = (tool.agent for tool in agent.tools if isinstance(tool, AgentTool))
    return next((what for each in children if (what := _needs_a_person(each, f" of agent {each.name!r}"))), "")


def _takes_one(function: Any) -> bool:
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:  # it does not say what it takes
        return True
    return True
