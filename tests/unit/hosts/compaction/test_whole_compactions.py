"""A conversation and a document, compacted whole: items, conservation and what comes out, together."""

import pytest

from wakeful.contracts import transcript
from wakeful.contracts.transcript import check_pairing
from wakeful.hosts.compaction.compaction_items import conservation, items_of, normalise_item, provenance
from wakeful.hosts.compaction.markdown_sections import (
    join_markdown,
    split_markdown,
    split_markdown_overflow,
    summarise_section,
)
from wakeful.hosts.compaction.transcript_compaction import folded
from wakeful.hosts.compaction.transcript_cut import SummaryCut, TranscriptCompactionPolicy, plan


@pytest.mark.spec("API-CNS-09")
def test_a_conversation_and_a_document_are_folded_without_losing_what_has_to_be_kept() -> None:
    conversation = [transcript.text("user", "Find it, please.")]
    for turn in range(5):
        conversation += (
            transcript.tool_call("a/find", {"q": turn}, tool_call_id=f"c{turn}", turn=turn),
            transcript.tool_result("a/find", {"result": "x" * 50}, tool_call_id=f"c{turn}", content="x" * 50),
        )
    policy = TranscriptCompactionPolicy(enabled=True, max_messages=6, recent_messages=3, conservation_enabled=True)
    planned = plan(conversation, policy)
    assert isinstance(planned, SummaryCut)
    kept = [item.to_wire() for item in items_of(planned.older)]
    for wire in kept:
        assert normalise_item(wire).to_wire() == wire, "an item is whole by itself"
    done = folded(planned, {"summary": "Nothing was found four times.", "archived_items": kept})
    assert done.status == "compacted" and done.metadata["compaction"]["conservation"]["passed"]
    check_pairing(done.messages)
    assert done.messages[1] == conversation[0], "what was asked last stays"
    assert sorted(item.content for item in done.archive_items + items_of(done.messages[1:])) == sorted(
        item.content for item in items_of(conversation)
    )

    document = "intro\n\n# Log\n" + "old\n" * 50 + "## Detail\n" + "more\n" * 50 + "# Plan\nnext\n"
    items = split_markdown(document)
    assert join_markdown(items) == document
    short = tuple(summarise_section(item, "Long ago.") if item.metadata.get("key") == "Log" else item for item in items)
    over = split_markdown_overflow(short, 120, "vault/1")
    assert [item.metadata.get("destination") for item in over.items] == [None, None, "vault/1", None]
    rebuilt = join_markdown(over.items)
    assert rebuilt.startswith("intro\n\n# Log\n\nLong ago.\n") and rebuilt.endswith("# Plan\nnext\n")
    counted = provenance(items, short[1:2], over.items, (items[1], *over.archived))
    assert conservation(counted, enabled=True, ratio=1.0, fails=True).passed
    lost = provenance(items, short[1:2], over.items)
    assert not conservation(lost, enabled=True, ratio=1.0, fails=True).passed, "with nothing put aside it is lost"
