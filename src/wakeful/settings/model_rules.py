"""Which models the owner of an installation lets agents ask: `[models]` in `wakeful.toml`.

    [models]
    allow = ["anthropic:*", "ollama:*"]    # only these; left out: any
    deny = ["*:*-preview"]                 # never these, whatever `allow` says
    offline = true                         # none beyond this machine; WAKEFUL_OFFLINE=1 says the same

A model that they rule out is no candidate of any turn. A rule that cannot be read is an error, and never passed over.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from wakeful.contracts.errors import InvalidConfig
from wakeful.decisions.policy.patterns import text_test
from wakeful.settings.owner_file import OwnerFile, check_names, owner_file

TABLE = "models"
VARIABLE = "WAKEFUL_OFFLINE"
KNOWN = ("allow", "deny", "offline")


class RuledOut(NamedTuple):
    """Why a model is not asked."""

    reason: Literal["policy_denied", "offline"]
    detail: str


class ModelRules(NamedTuple):
    """The owner's word."""

    allow: tuple[str, ...] | None = None
    """Patterns of `provider:model`, with `*`; None: any."""
    deny: tuple[str, ...] = ()
    offline: bool = False

    def against(self, ref: str, *, leaves_machine: bool) -> RuledOut | None:
        """What speaks against a model; None: it may be asked."""
        denied = next((pattern for pattern in self.deny if text_test(pattern)(ref)), None)
        if denied is not None:
            return RuledOut("policy_denied", f"[{TABLE}] deny names {denied!r}")
        if self.allow is not None and not any(text_test(pattern)(ref) for pattern in self.allow):
            return RuledOut("policy_denied", f"[{TABLE}] allow does not name it")
        if self.offline and leaves_machine:
            return RuledOut("offline", f"[{TABLE}] offline or {VARIABLE} is set, and it is beyond this machine")
        return None


ANY_MODEL = ModelRules()
"""Nobody has said anything."""


def model_rules(environ: Mapping[str, str], file: OwnerFile | None = None) -> ModelRules:
    """What the owner's file and the environment say. Raises InvalidConfig with the place."""
    file = owner_file(environ) if file is None else file
    table = file.table(TABLE)
    where = f"{file.path}: [{TABLE}]"
    check_names(table, KNOWN, f"{where} has", TABLE)
    offline = table.get("offline", False)
    if not isinstance(offline, bool):
        raise InvalidConfig(f"{where} offline is {offline!r}", "Write true or false.").within(TABLE, "offline")
    said = environ.get(VARIABLE, "")
    if said not in ("", "0", "1"):
        raise InvalidConfig(f"{VARIABLE} is {said!r}", "Set it to 1, or unset it.")
    return ModelRules(
        _patterns(table, "allow", where) if "allow" in table else None,
        _patterns(table, "deny", where),
        offline or said == "1",
    )


def _patterns(table: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = table.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        hint = 'Write a list of models, such as ["anthropic:*"].'
        raise InvalidConfig(f"{where} {name} is {value!r}", hint).within(TABLE, name)
    return tuple(value)
