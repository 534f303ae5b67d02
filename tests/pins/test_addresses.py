"""Every import line that users were told of leads to the same kind of thing as when it was recorded."""

from pathlib import Path

import pytest

from pins.addresses import address_book, exported_addresses, kind_of, printed_addresses, resolved
from pins.goldens import check_golden


def test_public_addresses_lead_to_what_was_recorded(root: Path) -> None:
    check_golden("addresses.txt", address_book(root))


def test_import_lines_of_documents_and_examples_are_found(root: Path) -> None:
    printed = printed_addresses(root)
    assert {"docs/reference/providers.md", "examples/local_server.py"} <= {*printed["wakeful.providers.OpenAIChat"]}
    assert "README.md" in printed["wakeful.testing.scripted"]
    assert "wakeful.run" in exported_addresses()


def test_an_address_that_leads_nowhere_and_a_thing_of_another_kind_are_noticed() -> None:
    with pytest.raises(AttributeError):
        resolved("wakeful.testing.no_such_name")
    with pytest.raises(ImportError):
        resolved("no_such_package.thing")
    assert kind_of(resolved("wakeful.run"))[0] == "is an async function"
    assert kind_of(resolved("wakeful.run_sync"))[0] == "is a function"
    assert "takes keyword store=" in kind_of(resolved("wakeful.run"))
    assert kind_of(resolved("wakeful.KeyReused"))[0] == "is an error: ForTheCaller, WakefulError, Exception"
    assert "has raise_for_status" in kind_of(resolved("wakeful.RunResult"))
