"""`scripted(...)` for tests: a scripted model that also notices when a test did not use up its script.

A turn that stops early while the test still passes is how a broken loop goes unseen. The pytest plugin asks here, after
each test, for the steps that nobody came to.
"""

from typing import Literal

from wakeful.ports import Clock, ModelRequest
from wakeful.providers.scripted import ScriptedModel
from wakeful.providers.scripted.model import Script
from wakeful.providers.scripted.steps import ReadyStep


class WatchedScript(ScriptedModel):
    """Remembers how far the furthest turn of the running test came."""

    def __init__(
        self,
        script: Script,
        name: str | None = None,
        *,
        clock: Clock | None = None,
        usage: Literal["auto"] | None = None,
        leftover: Literal["fail", "ignore"] = "fail",
        context_window: int | None = None,
    ) -> None:
        super().__init__(script, name, clock=clock, usage=usage, context_window=context_window)
        self._leftover = leftover
        self._reached = 0
        self._answered = False

    def step_for(self, request: ModelRequest) -> ReadyStep:
        step = super().step_for(request)
        if request.answered >= self._reached:
            if not self._reached and self._leftover == "fail":
                _used.append(self)
            self._reached = request.answered + 1
        self._answered = self._answered or step.failure(request.attempt) is None
        return step

    def left_over(self) -> str | None:
        """The steps that no turn of this test came to, in words. A script that gave nothing was not used."""
        if not self._answered or self.length is None or self._reached >= self.length:
            return None
        first, last = self._reached + 1, self.length
        steps = f"step {first} was" if first == last else f"steps {first} to {last} were"
        return f"{self.ref} has {last} steps and {steps} never asked for"

    def forget(self) -> None:
        self._reached = 0
        self._answered = False


_used: list[WatchedScript] = []
"""The watched scripts that the running test has asked something of."""


def scripted(
    script: Script,
    *,
    name: str | None = None,
    clock: Clock | None = None,
    usage: Literal["auto"] | None = None,
    leftover: Literal["fail", "ignore"] = "fail",
    context_window: int | None = None,
) -> ScriptedModel:
    """A model that says what `script` says: a list of steps, a YAML or JSON file, or a function that gives a step.

    `clock` sleeps the scripted delays, `usage="auto"` estimates tokens where a step gives none, and
    `leftover="ignore"` lets a test end before the script does. `context_window` is how many tokens it can be shown.
    """
    return WatchedScript(script, name, clock=clock, usage=usage, leftover=leftover, context_window=context_window)


def begin_test() -> None:
    """Forget what earlier tests did with models that outlive them."""
    for model in _used:
        model.forget()
    _used.clear()


def left_over_steps() -> list[str]:
    """What the running test has left over, one line a model."""
    return [line for line in (model.left_over() for model in _used) if line]
