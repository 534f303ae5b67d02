"""Mistakes of a first day: each is an error that says what was given and what to write instead. None hangs."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from wakeful import Agent, Image, open_store, run_sync, stream
from wakeful.errors import InvalidConfig, InvalidRequest, InvalidValue, StoreProblem
from wakeful.testing import scripted


class Unfinished(BaseModel):
    x: "NowhereDefined"  # type: ignore[name-defined]  # noqa: F821


def agent() -> Agent[None, str]:
    return Agent("any", scripted(["Done."], leftover="ignore"))


def watch(**how: Any) -> None:
    """A stream that is read without `async with`."""

    async def main() -> None:
        watched = stream(agent(), "go")
        if how.get("result"):
            await watched.result()
        async for _ in watched:
            pass

    asyncio.run(main())


MISTAKES: dict[str, tuple[Callable[[Path], Any], type[Exception], str, str]] = {
    "no prompt": (lambda here: run_sync(agent(), None), InvalidValue, "None is of type NoneType", "give a text"),  # type: ignore[arg-type]
    "an empty prompt": (
        lambda here: run_sync(agent(), " "),
        InvalidRequest,
        "the prompt is empty: ' '",
        "say something",
    ),
    "an empty list as prompt": (lambda here: run_sync(agent(), []), InvalidRequest, "the prompt is empty", "hello"),
    "a message as prompt": (
        lambda here: run_sync(agent(), {"role": "user", "content": "hi"}),  # type: ignore[arg-type]
        InvalidValue,
        "is of type dict",
        "history=",
    ),
    "a number among the parts": (
        lambda here: run_sync(agent(), ["hi", 17]),  # type: ignore[list-item]
        InvalidValue,
        r"prompt\[1\]: 17 is of type int",
        "an Image or a File",
    ),
    "a number as key": (
        lambda here: run_sync(agent(), "hi", store=here / "runs.db", key=17),  # type: ignore[arg-type]
        InvalidValue,
        "key: 17 is of type int",
        'key="17"',
    ),
    "a folder as store": (
        lambda here: run_sync(agent(), "hi", store=here),
        StoreProblem,
        "is a folder, not a store",
        "runs.db",
    ),
    "a folder as opened store": (
        lambda here: open_store(here).turns(),
        StoreProblem,
        "is a folder, not a store",
        "runs.db",
    ),
    "the name of an output type": (
        lambda here: Agent("any", scripted(["1"]), output_type="Answer"),  # type: ignore[arg-type]
        InvalidConfig,
        "output_type='Answer' is the name of a type",
        "without quotes",
    ),
    "an output type that names an unknown one": (
        lambda here: Agent("any", scripted(["1"]), output_type=Unfinished),
        InvalidConfig,
        "names a type that is not defined yet",
        "model_rebuild",
    ),
    "a model without its provider": (
        lambda here: Agent("any", "gpt-5"),
        InvalidConfig,
        "model='gpt-5' does not name a provider",
        "wakeful models",
    ),
    "a stream without async with": (lambda here: watch(), InvalidRequest, "not been started", "async with stream"),
    "its result without async with": (
        lambda here: watch(result=True),
        InvalidRequest,
        "not been started",
        "async with stream",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_value_and_what_to_write(mistake: str, tmp_path: Path) -> None:
    make, kind, words, hint = MISTAKES[mistake]
    with pytest.raises(kind, match=words) as told:
        make(tmp_path)
    assert hint in str(told.value.hint), told.value.hint  # type: ignore[attr-defined]


def test_a_prompt_may_be_any_list_of_its_parts() -> None:
    picture = Image(data=b"\x89PNG\r\n", media_type="image/png")
    assert run_sync(agent(), ["look", picture]).output == run_sync(agent(), ("look", picture)).output == "Done."
