"""Settings that a model is asked without, because they are not for it: a run says so once, and goes on.

Each wire format leaves out what its model cannot take. Before that, what was written for one provider stays with it:
`extra_headers` and `extra_body` go to the server of the agent's own model, because a header may be a token and a field
that one server needs is one that another refuses. Two servers that were given by their addresses are two, whatever
name they share.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from wakeful.contracts.agents import TurnConfig
from wakeful.contracts.envelope import StoredFact
from wakeful.contracts.events import WarningIssued
from wakeful.contracts.model_settings import ModelSettings, owner_of
from wakeful.contracts.setting_names import EXTRAS, VENDORS
from wakeful.ports import Model

LEFT_OUT = "settings_left_out"
"""The code of the warning."""
WITHHELD = "server_tool_withheld"
"""The code of the warning about a tool that the provider would run."""


class RequestSettings(NamedTuple):
    """The settings of one request."""

    sent: ModelSettings
    withheld: tuple[str, ...]


def settings_for(model: Model, config: TurnConfig, models: Sequence[Model]) -> RequestSettings:
    """What a model of the chain is handed of the settings, and what it is not."""
    settings = config.model_settings
    if not settings.model_fields_set:
        return RequestSettings(settings, ())
    extras = [name for name in EXTRAS if getattr(settings, name)]
    withheld = extras if extras and owner_of(model) != config.owner else []
    if all(hasattr(each, "vendors") for each in models):  # a model of the host's own says nothing about vendors
        taken = {name for each in models for name in getattr(each, "vendors", ())}
        withheld = [*withheld, *(name for name in VENDORS if settings.vendor(name) and name not in taken)]
    return RequestSettings(settings.without(*withheld) if withheld else settings, tuple(withheld))


class UnsentSettings:
    """What was said about settings in a turn, so that it is said once and not with every reply."""

    def __init__(self, of_turn: Iterable[StoredFact] = ()) -> None:
        events = (entry.fact.event for entry in of_turn)
        self._said = {
            event.message for event in events if isinstance(event, WarningIssued) and event.code in (LEFT_OUT, WITHHELD)
        }

    def withheld(self, why: Sequence[str]) -> list[WarningIssued]:
        """The fact that a tool of the provider's was not offered to it, unless it was said."""
        said = [f"the provider was not offered {each}" for each in why]
        new = [message for message in said if message not in self._said]
        self._said.update(new)
        return [WarningIssued(code=WITHHELD, message=message) for message in new]

    def warning(self, model_ref: str, names: Sequence[Any]) -> list[WarningIssued]:
        """The fact that says so, unless it was said."""
        listed = ", ".join(map(str, names))
        message = f"{model_ref} does not take {listed}: the request was sent without"
        if message in self._said:
            return []
        self._said.add(message)
        return [WarningIssued(code=LEFT_OUT, message=message)]
