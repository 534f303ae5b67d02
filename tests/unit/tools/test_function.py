"""A tool is a function before and after decoration, and refuses what it could not keep."""

import asyncio
import functools
import inspect
from dataclasses import dataclass
from typing import Any

import pytest

from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.probes import DidNotHappen, Happened, StillUnknown
from wakeful.tools.context import RunContext
from wakeful.tools.decorator import tool
from wakeful.tools.function import FunctionTool
from wakeful.tools.schema import ArgumentsRefused
from wakeful.tools.tool import Tool


@dataclass
class Shop:
    prices: dict[str, int]


SHOP = Shop({"A17": 4200})


@tool(effect="pure")
def look_up(ctx: RunContext[Shop], order: str) -> int:
    """Price of an order in cents."""
    return ctx.deps.prices[order]


@tool
async def double(number: int) -> int:
    """Twice the number."""
    return number * 2


def test_a_decorated_function_is_called_as_before() -> None:
    assert look_up(RunContext(SHOP), "A17") == 4200
    assert (look_up.__name__, look_up.__doc__) == ("look_up", "Price of an order in cents.")
    assert list(inspect.signature(look_up).parameters) == ["ctx", "order"]
    assert not inspect.iscoroutinefunction(look_up)


async def test_a_decorated_coroutine_function_stays_one() -> None:
    assert inspect.iscoroutinefunction(double)
    assert await double(4) == 8


async def test_invoke_takes_json_arguments_and_leaves_defaults_to_the_function() -> None:
    seen: list[Any] = []

    @tool(effect="pure")
    def remember(first: int, second: str = "mine") -> None:
        seen.append((first, second))

    await remember.invoke(RunContext(None), {"first": 1})
    await remember.invoke(RunContext(None), {"first": 2, "second": "theirs"})
    assert seen == [(1, "mine"), (2, "theirs")]
    assert await look_up.invoke(RunContext(SHOP), {"order": "A17"}) == 4200
    assert await double.invoke(RunContext(None), {"number": 3}) == 6


async def test_arguments_of_another_type_are_refused_before_anything_runs() -> None:
    with pytest.raises(ArgumentsRefused) as refused:
        double.start(RunContext(None), {"number": "many", "other": 1})
    assert {path for path, _ in refused.value.problems} == {"number", "other"}


def test_a_bare_decorator_and_a_wrapped_function_are_irreversible_unless_they_say_otherwise() -> None:
    def refund(order: str) -> str:
        return order

    assert double.declaration.effect == "irreversible"
    assert tool(refund).declaration.effect == "irreversible"
    assert tool(refund, effect="keyed", name="give_back").declaration.name == "give_back"


def test_the_declaration_says_what_the_decorator_said() -> None:
    @tool(
        effect="keyed",
        description="Pays.",
        timeout=30,
        retries=1,
        locks=["ledger"],
        reads_private=True,
        child_safe=False,
    )
    def pay(cents: int) -> str:
        """Not this."""
        return str(cents)

    told = pay.declaration
    assert (told.name, told.description, told.effect, told.timeout, told.retries) == ("pay", "Pays.", "keyed", 30, 1)
    assert (told.locks, told.reads_private, told.leaves_machine, told.child_safe) == (("ledger",), True, False, False)
    assert told.changes_state is None
    assert pay.declaration is told


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.total = 0

    def add(self, amount: int) -> int:
        """Add to the total."""
        self.total += amount
        return self.total

    def __call__(self, amount: int) -> int:
        """Add when called."""
        return self.add(amount)


async def test_partials_bound_methods_and_callable_objects_work() -> None:
    counter = Counter()

    def scale(factor: int, number: int) -> int:
        """Multiply."""
        return factor * number

    method, object_, part = tool(counter.add), tool(counter), tool(functools.partial(scale, factor=3))
    assert [each.declaration.name for each in (method, object_, part)] == ["add", "Counter", "scale"]
    assert [each.declaration.description for each in (method, object_, part)] == [
        "Add to the total.",
        "Add when called.",
        "Multiply.",
    ]
    assert list(part.declaration.input_schema["properties"]) == ["number"]
    ctx = RunContext(None)
    assert await method.invoke(ctx, {"amount": 2}) == 2
    assert await object_.invoke(ctx, {"amount": 2}) == 4
    assert await part.invoke(ctx, {"number": 5}) == 15


async def test_a_plain_function_that_passes_a_coroutine_on_is_awaited() -> None:
    def indirect(number: int) -> Any:
        return double(number)

    assert await tool(indirect).invoke(RunContext(None), {"number": 5}) == 10


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"effect": "harmless"}, "harmless.*no such effect"),
        ({"timeout": -1}, "timeout=-1"),
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": float("inf")}, "timeout=inf"),
        ({"timeout": True}, "timeout=True"),
        ({"retries": -1}, "retries=-1"),
        ({"retries": 1.5}, "retries=1.5"),
        ({"locks": "ledger"}, "locks='ledger'"),
        ({"effect": "pure", "changes_state": True}, "a pure tool changes nothing"),
        ({"name": "two words"}, "two words"),
        ({"name": ""}, "''"),
    ],
)
def test_wrong_options_are_refused_with_their_value(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidConfig, match=said):
        tool(**given)(lambda: None)


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(InvalidConfig, match="<lambda>"):
        tool(lambda: None)
    assert tool(lambda: None, name="nothing").name == "nothing"


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="needs a function, not a int"):
        tool(5)
    with pytest.raises(InvalidConfig, match="look_up is a tool already"):
        tool(look_up)


def test_an_object_of_a_package_that_only_sounds_like_another_librarys_is_a_function_like_any_other() -> None:
    mine = type("Mine", (), {"__module__": "agents.helpers_of_mine", "__call__": lambda self: None})
    assert tool(mine()).name == "Mine"


def test_a_tool_knows_whether_it_reads_deps() -> None:
    def no_context(x: int) -> None: ...
    def no_deps(ctx: RunContext[None], x: int) -> None: ...
    def bare(ctx: RunContext, x: int) -> None: ...
    def any_deps(ctx: RunContext[Any], x: int) -> None: ...
    def maybe(ctx: RunContext[Shop | None], x: int) -> None: ...
    def text(ctx: "RunContext[NotImportedHere]", x: int) -> None: ...  # type: ignore[name-defined]  # noqa: F821
    def text_none(ctx: "RunContext[None]", x: int) -> None: ...

    assert look_up.needs_deps and tool(text).needs_deps
    assert not any(tool(fn).needs_deps for fn in (no_context, no_deps, bare, any_deps, maybe, text_none))
    assert "ctx" not in tool(text).declaration.input_schema["properties"]


# --- probes --------------------------------------------------------------------------------------------------------


def _probeable() -> FunctionTool[..., Any, Any]:
    @tool(effect="probeable")
    def refund(ctx: RunContext[Shop], order: str, cents: int = 5) -> str:
        return f"{order} {cents}"

    return refund


async def test_a_probe_is_given_the_context_and_the_arguments_it_names() -> None:
    refund, ctx = _probeable(), RunContext(SHOP)
    assert not refund.has_probe

    @refund.probe
    def only_context(ctx: RunContext[Shop]) -> Happened:
        return Happened(ctx.deps.prices["A17"])

    assert refund.has_probe
    assert await refund.ask_probe(ctx, {"order": "A17"}) == Happened(4200)

    @refund.probe
    async def one_argument(ctx: RunContext[Shop], order: str) -> Happened:
        return Happened(order)

    assert await refund.ask_probe(ctx, {"order": "A17"}) == Happened("A17")

    @refund.probe
    def all_arguments(ctx: Any, **given: Any) -> StillUnknown:
        return StillUnknown(str(given))

    assert await refund.ask_probe(ctx, {"order": "A17"}) == StillUnknown("{'order': 'A17'}")

    @refund.probe
    def untyped(ctx, cents=0):  # type: ignore[no-untyped-def]
        return DidNotHappen() if cents == 7 else StillUnknown()

    assert await refund.ask_probe(ctx, {"order": "A17", "cents": 7}) == DidNotHappen()


async def test_a_probe_that_raises_or_answers_nonsense_cannot_say() -> None:
    refund, ctx = _probeable(), RunContext(SHOP)

    @refund.probe
    def broken(ctx: RunContext[Shop]) -> Happened:
        raise OSError("no route")

    answer = await refund.ask_probe(ctx, {"order": "A17"})
    assert isinstance(answer, StillUnknown) and "OSError: no route" in answer.reason

    @refund.probe
    def nonsense(ctx: RunContext[Shop]) -> bool:
        return False

    answer = await refund.ask_probe(ctx, {"order": "A17"})
    assert isinstance(answer, StillUnknown) and "returned a bool" in answer.reason


def test_a_probe_that_does_not_fit_is_refused() -> None:
    refund = _probeable()
    with pytest.raises(InvalidConfig, match=r"wants 'customer', which the tool does not have"):

        @refund.probe
        def wrong(ctx: RunContext[Shop], customer: str) -> StillUnknown:
            return StillUnknown()

    with pytest.raises(InvalidConfig, match="look_up has a probe and effect='pure'"):
        look_up.probe(lambda ctx: StillUnknown())


async def test_a_tool_without_a_probe_cannot_say() -> None:
    assert await look_up.ask_probe(RunContext(SHOP), {"order": "A17"}) == StillUnknown("look_up has no probe")
    assert isinstance(look_up, Tool)


# --- running -------------------------------------------------------------------------------------------------------


async def test_a_sync_tool_runs_off_the_loop_and_an_async_one_on_it() -> None:
    import threading

    @tool
    def off() -> int:
        return threading.get_ident()

    @tool
    async def on() -> int:
        return threading.get_ident()

    ctx, here = RunContext(None), threading.get_ident()
    begun_off, begun_on = off.start(ctx, {}), on.start(ctx, {})
    assert (begun_off.is_thread, begun_on.is_thread) == (True, False)
    assert await begun_off.result != here
    assert await begun_on.result == here


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration(), asyncio.CancelledError()])
async def test_a_sync_tool_cannot_end_the_process(error: BaseException) -> None:
    @tool
    def leave() -> None:
        raise error

    with pytest.raises(RuntimeError, match=type(error).__name__):
        await leave.invoke(RunContext(None), {})


async def test_an_async_tool_cannot_end_the_process() -> None:
    @tool
    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit"):
        await leave.invoke(RunContext(None), {})
