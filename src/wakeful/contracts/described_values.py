"""Values whose JSON Schemas say what each field means, in the words that stand under it in the source.

The words are read when a schema is asked for: reading them while the class is made, as `use_attribute_docstrings` does,
is a tenth of the start of every command, and few commands show a schema.
"""

import ast
import inspect
from textwrap import dedent
from typing import Any

from pydantic import GetJsonSchemaHandler

from wakeful.contracts.values import Value


class DescribedValue(Value):
    """A value whose schema has a description of each field that has words under it."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema: dict[str, Any] = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, words in _words_of_fields(cls).items():
            if name in properties:
                properties[name].setdefault("description", words)
        return schema


def _words_of_fields(kind: type[DescribedValue]) -> dict[str, str]:
    """Field to its words, of a class and of those it is made from; none where no source is there."""
    found = {}
    for owner in reversed(kind.__mro__):
        if not issubclass(owner, DescribedValue) or owner is DescribedValue:
            continue
        try:
            (parsed,) = ast.parse(dedent(inspect.getsource(owner))).body
        except (OSError, TypeError):
            continue
        assert isinstance(parsed, ast.ClassDef)
        for field, below in zip(parsed.body, parsed.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                    found[name] = inspect.cleandoc(words)
    return found
