"""Documents through `wakeful.hosts`: a long memory file is split, folded, moved away and joined again."""

import pytest

from wakeful.contracts.errors import InvalidValue
from wakeful.hosts import join_markdown, point_to_section, split_markdown, split_markdown_overflow, summarise_section

DOCUMENT = """Notes of a shop.

# Orders
What came in.

## Today
- A17

```python
# not a heading
```

# Orders
The same name again.

# Stock
tea, coffee
"""


@pytest.mark.spec("API-CNS-05", "API-CNS-08")
def test_a_document_that_is_split_and_joined_is_what_it_was() -> None:
    items = split_markdown(DOCUMENT)
    assert join_markdown(items) == DOCUMENT
    assert [item.metadata.get("key") for item in items] == [
        None,
        "Orders",
        "Orders > Today",
        "Orders (2)",
        "Stock",
    ]
    assert all("not a heading" not in str(item.metadata.get("key")) for item in items)


@pytest.mark.spec("API-CNS-06")
def test_what_is_folded_or_moved_keeps_its_heading_and_a_pointer_says_where_to() -> None:
    preamble, orders, today, second, stock = split_markdown(DOCUMENT)
    folded = summarise_section(orders, "Two orders.")
    moved = point_to_section(stock, "archive/stock.md")
    assert [item.type for item in (preamble, orders, folded, moved)] == [
        "markdown_preamble",
        "markdown_section",
        "markdown_section_summary",
        "markdown_section_pointer",
    ]
    again = join_markdown((preamble, folded, today, second, moved))
    assert "# Orders\n" in again and "Two orders." in again and "What came in." not in again
    assert "# Stock\n" in again and "archive/stock.md" in again and "coffee" not in again
    with pytest.raises(InvalidValue, match="destination"):
        point_to_section(stock, " ")


@pytest.mark.spec("API-CNS-07")
def test_sections_are_grouped_by_level_and_what_overflows_is_archived_with_a_pointer() -> None:
    assert [item.metadata.get("key") for item in split_markdown(DOCUMENT, level=1)] == [
        None,
        "Orders",
        "Orders (2)",
        "Stock",
    ]
    with pytest.raises(InvalidValue, match="level"):
        split_markdown(DOCUMENT, level=7)
    long = "\n".join(f"# Day {day}\n{'x' * 400}\n" for day in range(6))
    cut = split_markdown_overflow(split_markdown(long), 1_500, "archive/days.md")
    assert cut == split_markdown_overflow(split_markdown(long), 1_500, "archive/days.md")
    assert cut.archived and len(join_markdown(cut.items).encode()) < len(long.encode())
    assert all("x" * 400 in item.content for item in cut.archived)
    assert "archive/days.md" in join_markdown(cut.items)
