"""`runtime` of declarations and results: what stays, what is dropped, what is hidden."""

import math
from typing import Any

import pytest

from wakeful.contracts.runtime_metadata import is_repeatable, merged_runtime, normalise_runtime
from wakeful.hosts.tools.declaration_reader import normalize_for_server

SERVER: dict[str, Any] = {"name": "ability/x", "source": "s", "description": "d"}


@pytest.mark.spec("API-RTM-01", "API-RTM-02")
def test_declarations_carry_the_canonical_keys_and_the_callers_own() -> None:
    canonical = {
        "duplicate_policy": ("repeatable",),
        "completion_signal": ("progress",),
        "capability_scope": ("runtime_local", "control_plane"),
        "environment": ("runtime_local", "control_plane"),
    }
    for key, values in canonical.items():
        for value in values:
            assert normalize_for_server({**SERVER, "runtime": {key: value}}).runtime == {key: value}
    own = {"duplicate_policy": "sometimes", "acme": {"retries": [1, 2.5, None, True]}}
    assert normalize_for_server({**SERVER, "runtime": own}).runtime == own
    assert normalize_for_server(SERVER).runtime == {}
    assert merged_runtime({}, own) == own  # of a result
    assert (is_repeatable({"duplicate_policy": "repeatable"}), is_repeatable({})) == (True, False)


@pytest.mark.spec("API-RTM-03")
def test_what_is_not_json_is_dropped_and_secrets_are_hidden_at_every_depth() -> None:
    raw = {
        "n": 1,
        "f": 0.5,
        "t": "x",
        "b": False,
        "none": None,
        "nan": math.nan,
        "live": object(),
        "set": {1},
        7: "no text",
        "list": [1, object(), {"password": "p", "ok": (1, 2)}, b"bytes"],
        "deep": {"a": {"api-key": {"inner": 1}, 3: "x"}},
        "max_tokens": 50,
    }
    assert normalise_runtime(raw) == {
        "n": 1,
        "f": 0.5,
        "t": "x",
        "b": False,
        "none": None,
        "list": [1, {"password": "[redacted]", "ok": [1, 2]}],
        "deep": {"a": {"api-key": "[redacted]"}},
        "max_tokens": 50,
    }
    assert normalise_runtime("no object") == {}


def test_a_result_speaks_over_its_declaration_and_changes_neither() -> None:
    declared = {"environment": "runtime_local", "own": {"a": 1}}
    own = {"environment": "control_plane", "token": "t"}
    assert merged_runtime(declared, own) == {"environment": "control_plane", "own": {"a": 1}, "token": "[redacted]"}
    assert merged_runtime(declared, None) == declared == {"environment": "runtime_local", "own": {"a": 1}}
    assert own["token"] == "t"
