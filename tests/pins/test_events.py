"""The published events of each scenario: their kinds, order, envelopes and payloads are what readers rely on."""

import json
from pathlib import Path
from typing import Any

import pytest

from pins.goldens import check_golden
from pins.placeholders import Placeholders
from pins.played import played
from pins.scenarios import SCENARIOS


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_events_of_a_run_are_the_recorded_ones(name: str, tmp_path: Path) -> None:
    events = (await played(name, tmp_path)).events
    check_golden(f"events/{name}.json", lines_of(Placeholders(folder=tmp_path).value(events)))


def lines_of(events: list[dict[str, Any]]) -> str:
    """JSON with one line for an envelope and one for each field of its payload."""
    shown = []
    for event in events:
        payload = ",\n".join(f"    {_json(key)}: {_json(value)}" for key, value in event["payload"].items())
        envelope = _json({key: value for key, value in event.items() if key != "payload" and value != {}})[:-1]
        shown.append(f'  {envelope}, "payload": {{\n{payload}\n  }}}}')
    return "[\n" + ",\n".join(shown) + "\n]\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
