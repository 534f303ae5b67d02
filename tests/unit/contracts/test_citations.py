"""Citations: tidy, and without anything private."""

from pathlib import Path
from typing import Any

import pytest

import wakeful
from wakeful.contracts.citations import normalise_citation, with_safe_citations
from wakeful.contracts.principals import ExecutionPrincipal
from wakeful.contracts.runtime_tools import RuntimeToolResult
from wakeful.hosts.tools.declaration_reader import normalize_for_server
from wakeful.hosts.tools.tool_execution import normalised

FULL: dict[str, Any] = {
    "source": "wiki",
    "source_id": "w1",
    "item_id": "i1",
    "fragment_id": "f1",
    "source_title": "Wiki",
    "source_url": "https://example.org/1",
    "score": 0.5,
    "excerpt": "words",
}


@pytest.mark.spec("API-CIT-01", "API-CIT-02")
def test_fields_are_trimmed_and_what_is_unusable_is_dropped_and_the_rest_stays() -> None:
    assert normalise_citation(FULL) == FULL
    raw = {
        "citations": [
            {"source": "  wiki ", "source_id": 7, "item_id": " ", "excerpt": ["x"], "score": "0.5", "page": {"n": 3}},
            {"source": None, "score": 1, "fragment_id": True},
            "text",
            None,
            ["list"],
        ],
        "took_ms": 12,
        "nested": {"citations": "mine"},
    }
    safe = with_safe_citations(raw)
    assert safe == {
        "citations": [{"source": "wiki", "source_id": "7", "page": {"n": 3}}, {"score": 1}],
        "took_ms": 12,
        "nested": {"citations": "mine"},
    }
    assert with_safe_citations({"citations": "none"}) == {"citations": []}
    result = RuntimeToolResult.normalise({"request_id": "r", "tool_name": "t", "result": {}, "metadata": raw})
    assert result.metadata == safe
    tool = normalize_for_server({"name": "a/search", "source": "s", "description": "d"})
    assert normalised({"success": True, "result": 1, "metadata": raw}, tool)["metadata"] == safe


@pytest.mark.spec("API-CIT-03")
def test_access_is_told_in_generic_words() -> None:
    for status in ("allowed", "denied", "partial", "source_restricted"):
        assert normalise_citation({"access_status": status}) == {"access_status": status}
    assert normalise_citation({"access_status": "granted by bob"}) == {}
    who = ExecutionPrincipal.agent_token("tok-1", "helper", owner_type="team", owner_key="k", binding={"sig": "x"})
    assert normalise_citation({"restriction_reason": " workspace ", "principal": who.to_safe_metadata()}) == {
        "restriction_reason": "workspace",
        "principal": who.to_safe_metadata(),
    }
    diagnostics = {"source_diagnostics": [{"access_status": "denied", "principal": who.model_dump()}]}
    (entry,) = with_safe_citations(diagnostics)["source_diagnostics"]
    assert set(entry["principal"]) <= set(who.to_safe_metadata())


PRIVATE: dict[str, Any] = {
    "request_metadata": {"ip": "10.0.0.1"},
    "token_id": "tok-1",
    "owner_key": "key-1",
    "audience_claims": {"email": "a@b"},
    "capabilities": ["edit"],
    "capability_ceiling": {"denied": []},
    "cookies": "c=1",
    "Set-Cookie": "c=1",
    "nonce": "n",
    "credentials": {"user": "u"},
    "api_key": "k",
    "binding": {"sig": "x"},
    "Binding-Claims": {"sig": "x"},
}


@pytest.mark.spec("API-CIT-04")
@pytest.mark.parametrize("key", PRIVATE)
def test_private_keys_are_removed_wherever_they_stand(key: str) -> None:
    private = {key: PRIVATE[key]}
    citation = {
        **FULL,
        **private,
        "more": {"deep": [private, {"kept": 1}]},
        "principal": {"auth_source": "user", **private},
    }
    assert normalise_citation(citation) == {
        **FULL,
        "more": {"deep": [{}, {"kept": 1}]},
        "principal": {"auth_source": "user"},
    }
    # Taken out, the key would be there: it is an extra field like `more`, which stays.
    assert "more" in (normalise_citation({"more": 1}) or {})


@pytest.mark.spec("API-CIT-06")
def test_nothing_but_the_normaliser_reads_what_a_citation_says_about_access() -> None:
    """An access decision would have to name the field it reads."""
    home = Path(wakeful.__file__).parent
    readers = {
        path.relative_to(home).as_posix()
        for path in home.rglob("*.py")
        if any(word in path.read_text() for word in ("access_status", "restriction_reason"))
    }
    assert readers == {"contracts/citations.py"}
