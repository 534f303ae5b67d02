"""The Claude Agent SDK's `SdkMcpTool`: its handler answers in MCP's content blocks."""

import base64
from typing import Any

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from wakeful.contracts.content import Image, Text
from wakeful.contracts.errors import ToolReported
from wakeful.contracts.tools import ToolError
from wakeful.tools.context import RunContext
from wakeful.tools.foreign.adoption import AdoptedTool


def take(given: Any) -> AdoptedTool:
    async def call(ctx: RunContext[Any], arguments: dict[str, Any]) -> Any:
        return _content(await given.handler(arguments))

    return AdoptedTool(given.name, given.description, _schema(given.input_schema), call)


def _schema(shape: Any) -> dict[str, Any]:
    if isinstance(shape, dict) and shape.get("type") == "object":
        return shape
    if isinstance(shape, dict):  # names to types; all of them are wanted
        make: Any = TypedDict
        shape = make("arguments", shape)
    schema = dict(TypeAdapter(shape).json_schema())
    schema.pop("title", None)
    return {"properties": {}, **schema}


def _content(answer: Any) -> Any:
    blocks = answer.get("content", []) if isinstance(answer, dict) else [answer]
    parts = [_part(block) for block in blocks]
    if isinstance(answer, dict) and (answer.get("is_error") or answer.get("isError")):
        words = "\n".join(part.text for part in parts if isinstance(part, Text))
        raise ToolReported(ToolError(kind="tool_error", message=words or "the tool failed and did not say why"))
    return parts[0].text if len(parts) == 1 and isinstance(parts[0], Text) else parts or None


def _part(block: Any) -> Text | Image:
    if isinstance(block, dict) and block.get("type") == "text":
        return Text(str(block.get("text", "")))
    if isinstance(block, dict) and block.get("type") == "image":
        return Image(data=base64.b64decode(block["data"]), media_type=block.get("mimeType", "image/png"))
    return Text(str(block))
