"""What an agent says about its commands: given as settings or as data, written down, and kept in a run."""

from pathlib import Path
from typing import Any

import pytest

from kit.runs.engine_runs import calls, of_kind
from wakeful import Agent, SandboxSettings, run
from wakeful.contracts.errors import InvalidConfig
from wakeful.contracts.events import SandboxApplied
from wakeful.testing import scripted


def test_settings_and_the_same_as_data_make_the_same_agent(tmp_path: Path) -> None:
    given = SandboxSettings(network="full", confinement="required", environment=("LANG",))
    agent = Agent("coder", "scripted:demo", workspace=tmp_path, sandbox=given)
    written = agent.to_dict()
    assert written["sandbox"] == {"network": "full", "confinement": "required", "environment": ["LANG"]}
    assert Agent.from_dict(written).sandbox == given == agent.changed(max_steps=3).sandbox
    assert "sandbox" not in Agent("coder", "scripted:demo", workspace=tmp_path).to_dict(), "the default is not written"
    limited = Agent("coder", "scripted:demo", sandbox={"limits": {"processes": 64}})
    assert limited.sandbox.limits.processes == 64


@pytest.mark.parametrize(
    ("sandbox", "said"),
    [
        ({"netwrok": "full"}, "netwrok"),
        ({"network": "some"}, "network"),
        ({"limits": {"procs": 1}}, "procs"),
        ("open", "sandbox='open'"),
    ],
)
def test_what_is_not_known_is_refused_by_name(sandbox: Any, said: str) -> None:
    with pytest.raises(InvalidConfig, match=said):
        Agent("coder", "scripted:demo", sandbox=sandbox)


@pytest.mark.parametrize("network", ["none", "full"])
async def test_a_run_is_held_to_what_the_agent_says(tmp_path: Path, network: Any) -> None:
    model = scripted([calls(("wakeful/exec_command", {"cmd": "true"})), "done"])
    agent = Agent("coder", model, workspace=tmp_path, sandbox=SandboxSettings(network=network))

    async def agreed(approval: Any) -> bool:
        return True

    result = await run(agent, "go", approver=agreed)
    (applied,) = of_kind(result, SandboxApplied)
    assert result.output == "done"
    if applied.mode != "not_enforced":
        assert applied.network == network
