"""The scripted model. The reply belongs to the round in the turn's log, not to a counter in this process:
a program that was killed and is run again gets the right one.
"""

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Literal, TypeAlias

from wakeful.contracts.content import Text
from wakeful.contracts.conversation import AssistantItem, CallPart, Item
from wakeful.contracts.errors import MalformedScript, ModelFailure
from wakeful.contracts.models import ModelGlimpse, Reply, TokenUsage
from wakeful.ports import Clock, ModelRequest
from wakeful.providers.prices import FREE, ListedPrice
from wakeful.providers.scripted.script_files import load
from wakeful.providers.scripted.steps import ReadyStep, failure_of, ready

Script: TypeAlias = (
    "str | os.PathLike[str] | Sequence[object] | Callable[[ModelRequest], object] | Callable[[], object]"
)
"""A file (or the name of a script that ships with the package), a list of steps, or a function that gives one."""


class ScriptedModel:
    """Gives step N to the turn's Nth answered round. Everything is checked when it is made, not when it is asked.

    Past its end a text repeats: the conversation is over and the model says so again. Calls do not repeat.
    """

    price: ListedPrice | None = FREE
    """Nobody is paid for a script, so a limit in money leaves room for it."""

    def __init__(
        self,
        script: Script,
        name: str | None = None,
        *,
        clock: Clock | None = None,
        usage: Literal["auto"] | None = None,
        context_window: int | None = None,
    ) -> None:
        self.context_window = context_window
        """How many tokens it can be shown; None: it does not say."""
        self._sleep: Callable[[float], Awaitable[None]] = clock.sleep if clock is not None else asyncio.sleep
        self._estimate = usage == "auto"
        self._steps: tuple[ReadyStep, ...] = ()
        self._function: Callable[[ModelRequest], object] | None = None
        if isinstance(script, str | os.PathLike):
            file = os.fspath(script)
            name = name or file
            loaded = load(file)
            self._estimate = self._estimate or loaded.usage == "auto"
            self._steps = self._ready(loaded.steps, file)
        elif callable(script):
            self._function = _taking_a_request(script)
        elif isinstance(script, Sequence):
            self._steps = self._ready(script, f"scripted:{name or 'inline'}")
        else:
            raise MalformedScript(
                f"a script is a list of steps, a file or a function, not {type(script).__name__}",
                "For a single reply write scripted(['the reply']).",
            )
        self._ref = f"scripted:{name or 'inline'}"

    @property
    def ref(self) -> str:
        return self._ref

    @property
    def length(self) -> int | None:
        """How many steps there are; None when a function gives them."""
        return len(self._steps) if self._function is None else None

    async def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        """Glimpses, when the request streams; then the reply, the same one either way."""
        step = self.step_for(request) if self._function is None else await self._asked(self._function, request)
        failure = None
        if not step.is_plain:
            if step.delay:
                await self._sleep(step.delay)
            failure = step.failure(request.attempt)
            if failure is not None and not (request.stream and failure.after_chunks):
                raise failure_of(failure, self._ref)
        if request.stream and (request.watched or failure is not None or step.delta_delay):
            for glimpse in step.glimpses[: failure.after_chunks if failure else None]:
                if step.delta_delay:
                    await self._sleep(step.delta_delay)
                yield glimpse
        if failure is not None or step.reply is None:
            raise failure_of(failure or step.failures[-1], self._ref)
        yield self._with_estimate(request, step.reply) if self._estimate else step.reply

    def step_for(self, request: ModelRequest) -> ReadyStep:
        """The step that belongs to the round."""
        position, steps = request.answered, self._steps
        if position < len(steps):
            return steps[position]
        last = steps[-1].reply
        if last is None or last.item.calls:
            raise ModelFailure(
                f"{self._ref} has {len(steps)} steps and step {position + 1} was asked for: "
                f"a script that ends in a call has nothing to say to its result",
                kind="invalid_response",
                stage="decode",
                retryable=False,
            )
        return steps[-1]

    @staticmethod
    def _ready(steps: Sequence[object], where: str) -> tuple[ReadyStep, ...]:
        if not steps:
            raise MalformedScript(f"{where}: there are no steps", "Give at least one, such as a text.")
        return tuple(ready(step, position, where) for position, step in enumerate(steps))

    async def _asked(self, function: Callable[[ModelRequest], object], request: ModelRequest) -> ReadyStep:
        """A provider raises nothing but ModelFailure, so whatever the function does wrong becomes one."""
        try:
            step = function(request)
            if inspect.isawaitable(step):
                step = await step
            return ready(step, request.answered, self._ref)
        except ModelFailure:
            raise
        except Exception as error:
            words = error.message if isinstance(error, MalformedScript) else f"{type(error).__name__}: {error}"
            raise ModelFailure(
                f"{self._ref}: the function gave no step {request.answered + 1}: {words}",
                kind="invalid_response",
                stage="decode",
                retryable=False,
            ) from error

    def _with_estimate(self, request: ModelRequest, reply: Reply) -> Reply:
        if reply.usage is not None:
            return reply
        heard = sum(map(len, request.history.encoded("scripted.size", _words))) + len(request.instructions.encode())
        said = len(_words(reply.item))
        tokens = TokenUsage(
            input_tokens=-(-heard // 3), output_tokens=-(-said // 3), total_tokens=-(-heard // 3) + -(-said // 3)
        )
        return reply.model_copy(update={"usage": tokens})


def scripted_from_reference(name: str) -> ScriptedModel:
    """What `scripted:<name>` stands for: a script that ships with the package, or a file."""
    if not name:
        raise MalformedScript("scripted: names no script", "Write scripted:demo, or scripted:path/to/script.yaml.")
    return ScriptedModel(name)


def _taking_a_request(function: Callable[..., object]) -> Callable[[ModelRequest], object]:
    """A script function may take the request or nothing."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(needed) > 1 or any(p.kind not in positional for p in needed):
        named = ", ".join(p.name for p in needed)
        raise MalformedScript(
            f"the script function {getattr(function, '__name__', function)!r} takes {named}",
            "A script function takes the ModelRequest, or nothing, and returns a step.",
        )
    if needed or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return function
    return lambda request: function()


def _words(item: Item) -> bytes:
    """What of an item counts when tokens are estimated: its words and its calls' arguments."""
    pieces = [part.text for part in item.parts if isinstance(part, Text)]
    if isinstance(item, AssistantItem):
        pieces += [f"{call.name}{_arguments(call)}" for call in item.calls]
    return "".join(pieces).encode()


def _arguments(call: CallPart) -> str:
    return call.raw_arguments if call.raw_arguments is not None else str(call.arguments)
