"""Audit entries: hashes and status, and nothing that a secret could be read from."""

from typing import Any

import pytest

from wakeful.contracts.audit import ToolAudit
from wakeful.contracts.tools import ToolDeclaration
from wakeful.decisions.redaction import REDACTED, stable_hash
from wakeful.views.audit_entry import audit_entry, audited_parameters

TOOL = ToolDeclaration(name="a/b", input_schema={}, sensitive_parameters=("pin",))
OK: dict[str, Any] = {"success": True, "tool_name": "a/b", "result": {"n": 1}, "metadata": {}}


def entry(parameters: dict[str, Any], result: dict[str, Any] = OK, adjusted: Any = None) -> ToolAudit:
    return audit_entry(
        turn_count=2,
        tool_name="a/b",
        tool_call_id="c",
        tool_source="abilities",
        parameters=parameters,
        declaration=TOOL,
        result=result,
        adjusted=adjusted,
    )


@pytest.mark.spec("API-AUD-01", "API-AUD-02")
def test_an_entry_has_the_documented_shape_and_no_raw_value() -> None:
    audit = entry({"q": "words", "pin": "9999"}, {**OK, "result": {"n": "answer"}})
    assert audit.model_dump(mode="json", exclude_none=True) == {
        "schema_version": 1,
        "type": "tool_call",
        "turn_count": 2,
        "tool_name": "a/b",
        "tool_call_id": "c",
        "tool_source": "abilities",
        "parameters_sha256": stable_hash({"q": "words", "pin": REDACTED}),
        "parameters_redacted": True,
        "success": True,
        "result_status": "success",
        "result_sha256": stable_hash({**OK, "result": {"n": "answer"}}),
    }
    assert not {"words", "9999", "answer"} & set(str(audit.model_dump_json()).split('"'))


@pytest.mark.spec("API-AUD-03")
@pytest.mark.parametrize("kind", ["tool_not_found", "missing_required_parameters", "executor_exception"])
def test_a_failed_call_carries_its_error_type(kind: str) -> None:
    audit = entry({}, {"success": False, "error": "no", "metadata": {"error_type": kind}})
    assert (audit.success, audit.result_status, audit.error_type) == (False, "error", kind)
    assert entry({}, {**OK, "metadata": {"error_type": kind}}).error_type is None
    assert entry({}, {"success": False, "error": "no", "metadata": {}}).error_type is None


@pytest.mark.spec("API-AUD-04")
def test_the_parameters_hash_does_not_depend_on_secrets() -> None:
    one = entry({"q": "x", "api_key": "k1", "pin": 1})
    assert entry({"q": "x", "api_key": "k2", "pin": 2}).parameters_sha256 == one.parameters_sha256
    assert entry({"q": "y", "api_key": "k1", "pin": 1}).parameters_sha256 != one.parameters_sha256


@pytest.mark.spec("API-AUD-05")
def test_a_hook_may_change_what_is_hashed_and_cannot_bring_a_secret_back() -> None:
    raw = {"q": "x", "pin": "9999", "who": {"token": "tok-1"}}
    default = audited_parameters(raw, TOOL)
    assert default == {"q": "x", "pin": REDACTED, "who": {"token": REDACTED}}
    assert audited_parameters(raw, TOOL, {**default, "q": "shortened"})["q"] == "shortened"
    for answer in (None, "text", ["list"], 7):
        assert audited_parameters(raw, TOOL, answer) == default
    restored = {"pin": "9999", "q": "pin is 9999", "elsewhere": ["tok-1"], "who": {"token": "tok-1"}}
    assert audited_parameters(raw, TOOL, restored) == {
        "pin": REDACTED,
        "q": REDACTED,
        "elsewhere": [REDACTED],
        "who": {"token": REDACTED},
    }


@pytest.mark.spec("API-AUD-06")
def test_the_result_hash_covers_payload_error_status_and_metadata_redacted() -> None:
    base = entry({}, OK).result_sha256
    changed = [
        {**OK, "result": {"n": 2}},
        {**OK, "metadata": {"k": 1}},
        {**OK, "status": "pending"},
        {"success": False, "error": "a", "metadata": {}},
        {"success": False, "error": "b", "metadata": {}},
    ]
    assert len({base, *(entry({}, result).result_sha256 for result in changed)}) == len(changed) + 1
    secrets = [entry({}, {**OK, "result": {"session_token": secret}}).result_sha256 for secret in ("s1", "s2")]
    assert secrets[0] == secrets[1]
