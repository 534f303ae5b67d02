"""What programs rely on beside the command line: the published schemas, and a run's result in all scenarios."""

import json
from pathlib import Path

from pins.goldens import check_golden, check_goldens
from pins.played import played
from pins.scenarios import SCENARIOS
from pins.schemas import schema_lines
from pins.shapes import shape_of
from wakeful.surfaces.cli.schema import SCHEMAS

FOLLOWS = ("standard-events",)
"""A schema that is made from another one, which is pinned."""


def test_the_published_schemas_are_the_recorded_ones() -> None:
    pinned = {name: make for name, (make, _) in SCHEMAS.items() if name not in FOLLOWS}
    found = {f"schemas/{name}.txt": "\n".join(schema_lines(make())) + "\n" for name, make in pinned.items()}
    check_goldens(found, alone_in="schemas")


def test_every_schema_in_the_documents_is_one_that_the_command_prints(root: Path) -> None:
    printed = [make() for make, _ in SCHEMAS.values()]
    for file in sorted((root / "docs" / "reference").glob("*.json")):
        assert json.loads(file.read_text()) in printed, file.name


async def test_the_shape_of_a_result_is_the_recorded_one(tmp_path: Path) -> None:
    results = [result for name in SCENARIOS for result in (await played(name, tmp_path)).results]
    check_golden("json/run-result.txt", "\n".join(shape_of(results)) + "\n")


def test_words_about_a_field_are_no_part_of_a_schemas_lines_and_its_rules_are() -> None:
    field = {"type": "string", "description": "words", "maxLength": 8}
    schema = {"type": "object", "properties": {"title": field, "n": {"$ref": "#/$defs/N"}}, "required": ["n"]}
    assert schema_lines({**schema, "$defs": {"N": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}) == [
        "(the document): object",
        "(the document).title: string, maxLength 8",
        "(the document).n: N, required",
        "N: integer | null",
    ]
