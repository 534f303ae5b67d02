"""`ask_person`: a question is a record like an approval, answered from anywhere, and its answer is the result."""

from typing import Any

import pytest

from kit.runs.asked_runs import say
from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent, Approval, ask_person, run
from wakeful.bootstrap.engines import new_engine
from wakeful.contracts.approvals import Answer, Approve, Reject
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.events import ActionRequired, ToolFailed, ToolResult
from wakeful.providers.scripted import ScriptedModel
from wakeful.service.commands.approvals import approvals
from wakeful.store.memory import Memory, MemoryStore
from wakeful.store.sqlite import SqliteStore

QUESTION: tuple[str, dict[str, Any]] = (
    "wakeful/ask_person",
    {"question": "Which colour?", "choices": ["red", "green"]},
)


def curious(*steps: Any) -> Agent[None, str]:
    said = [*(steps or [calls(QUESTION)]), "Thank you."]
    return Agent(
        "curious", ScriptedModel(lambda request: said[min(request.answered, len(said) - 1)]), tools=[ask_person]
    )


@pytest.fixture
async def store(tmp_path: Any) -> Any:
    opened = await SqliteStore.open(tmp_path / "runs.db")
    yield opened
    await opened.close()


async def test_a_question_waits_stands_in_the_result_and_its_answer_goes_to_the_model(store: SqliteStore) -> None:
    waits = await run(curious(), "go", store=store, key="k")
    assert (waits.status, waits.approvals) == ("approval_required", ())
    (question,) = waits.questions
    assert (question.kind, question.prompt, question.choices) == ("question", "Which colour?", ("red", "green"))
    assert question.decisions == ("answer", "reject")
    assert await approvals(new_engine(store)) == [question]
    again = await run(curious(), "go", store=store, key="k")
    assert again.questions == waits.questions, "it is asked once, however often the program is run"

    await say(store, question, Answer("green"))
    done = await run(curious(), "go", store=store, key="k")
    assert (done.output, done.questions) == ("Thank you.", ())
    (answered,) = of_kind(done, ToolResult)
    assert answered.item.text == "green"


async def test_an_answer_that_is_none_of_the_choices_is_refused_and_so_is_an_approval(store: SqliteStore) -> None:
    (question,) = (await run(curious(), "go", store=store, key="k")).questions
    with pytest.raises(InvalidValue, match="'blue' is not one of the choices"):
        await say(store, question, Answer("blue"))
    with pytest.raises(InvalidValue, match="is a question: it can be answered or rejected"):
        await say(store, question, Approve())
    assert [record.status for record in await approvals(new_engine(store))] == ["pending"]


async def test_a_question_that_nobody_wants_to_answer_is_told_so(store: SqliteStore) -> None:
    (question,) = (await run(curious(), "go", store=store, key="k")).questions
    await say(store, question, Reject("find out yourself"))
    done = await run(curious(), "go", store=store, key="k")
    (failed,) = of_kind(done, ToolFailed)
    assert "was not answered (ada): find out yourself" in failed.message


async def test_an_approver_answers_in_the_run() -> None:
    asked: list[Approval] = []

    async def person(question: Approval) -> Answer:
        asked.append(question)
        return Answer("red")

    done = await run(curious(), "go", approver=person)
    assert done.output == "Thank you."
    assert [question.prompt for question in asked] == ["Which colour?"]


async def test_where_nobody_could_ever_answer_the_model_is_told_at_once() -> None:
    done = await run(curious(), "go", store=MemoryStore(Memory()))
    assert done.output == "Thank you."
    (failed,) = of_kind(done, ToolFailed)
    assert (failed.tool_error.kind, of_kind(done, ActionRequired)) == ("nobody_to_ask", [])
