"""Secrets are learned from the facts of many turns at once, as a reader of a store has them."""

from kit.runs.event_samples import fact, said, tool_started
from wakeful.contracts.conversation import AssistantItem, CallPart
from wakeful.contracts.envelope import Fact
from wakeful.decisions.run_secrets import RunSecrets


def asked(turn: str, pin: str) -> Fact:
    """A call of that turn with an argument that its tool declares to be a secret."""
    part = CallPart(call_id="tool-call-1-1", name="look_up", arguments={"order": "A17", "pin": pin})
    item = AssistantItem(parts=(part,), provider="scripted")
    return fact(said("", "tool-call-1-1").model_copy(update={"item": item}), turn=turn)


def begun(turn: str) -> Fact:
    started = tool_started("tool-call-1-1").model_copy(update={"safe_args": {"order": "A17", "pin": "[redacted]"}})
    return fact(started, call="tool-call-1-1", turn=turn)


def test_calls_of_two_turns_that_have_the_same_id_hide_each_its_own() -> None:
    """Providers that give no ids: the first call of every thread has the same one."""
    secrets = RunSecrets()
    for each in (asked("turn_1", "opal-4711"), asked("turn_2", "jade-0815"), begun("turn_1"), begun("turn_2")):
        secrets.take(each)
    hidden = secrets.hide("opal-4711 and jade-0815 of A17")
    assert "opal" not in hidden and "jade" not in hidden and "A17" in hidden
