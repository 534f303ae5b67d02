"""Google's own types, asked for their opinion: whether they take a request, and what they read in an answer."""

import json
import warnings
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from wakeful.contracts.content import Thinking
from wakeful.contracts.models import Reply, TokenUsage

with warnings.catch_warnings():  # its source has texts that newer versions of Python warn of when they compile them
    warnings.simplefilter("ignore")
    from google.genai import types


class RequestBody(BaseModel):
    """The body of a `generateContent` request: its parts have Google's types, which refuse what they do not know."""

    model_config = ConfigDict(
        extra="forbid", alias_generator=to_camel, ser_json_bytes="base64", val_json_bytes="base64"
    )

    contents: list[types.Content]
    system_instruction: types.Content | None = None
    tools: list[types.Tool] | None = None
    tool_config: types.ToolConfig | None = None
    generation_config: types.GenerationConfig | None = None
    safety_settings: list[types.SafetySetting] | None = None
    service_tier: types.ServiceTier | None = None
    cached_content: str | None = None
    labels: dict[str, str] | None = None


def read_by_vendor(body: dict[str, Any]) -> dict[str, Any]:
    """The request as Google's types read it. Raises pydantic's ValidationError for what they do not know."""
    read = RequestBody.model_validate_json(json.dumps(body))
    found: dict[str, Any] = json.loads(read.model_dump_json(by_alias=True, exclude_unset=True))
    return found


def with_plain_base64(value: Any) -> Any:
    """JSON data in which bytes are spelt one way: the types spell them for URLs, which the API takes as well."""
    if isinstance(value, dict):
        return {
            key: inner.replace("-", "+").replace("_", "/")
            if key in ("thoughtSignature", "data") and isinstance(inner, str)
            else with_plain_base64(inner)
            for key, inner in value.items()
        }
    return [with_plain_base64(inner) for inner in value] if isinstance(value, list) else value


def sdk_answers(answers: list[dict[str, Any]]) -> dict[str, Any]:
    """What the vendor's types read in the answers of one stream, or in the one that came at once."""
    read = [types.GenerateContentResponse.model_validate_json(json.dumps(_known(each))) for each in answers]
    parts = [part for each in read for part in (each.candidates or [types.Candidate()])[0].content.parts or ()]  # type: ignore[union-attr]
    last = read[-1]
    usage = last.usage_metadata
    assert usage is not None
    taken = (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0)
    thought = usage.thoughts_token_count or 0
    given = (usage.candidates_token_count or 0) + thought
    reason = (last.candidates or [types.Candidate()])[0].finish_reason
    return {
        "text": "".join(part.text for part in parts if part.text and not part.thought),
        "thinking": "".join(part.text for part in parts if part.text and part.thought),
        "calls": [(part.function_call.name, part.function_call.args) for part in parts if part.function_call],
        "signatures": sum(part.thought_signature is not None for part in parts),
        "id": last.response_id,
        "stop": reason.value if reason is not None else None,
        "usage": TokenUsage(
            input_tokens=taken,
            output_tokens=given,
            total_tokens=taken + given,
            cached_input_tokens=usage.cached_content_token_count or 0,
            reasoning_tokens=thought,
        ),
    }


def our_facts(reply: Reply) -> dict[str, Any]:
    thoughts = [part for part in reply.item.parts if isinstance(part, Thinking)]
    return {
        "text": reply.item.text,
        "thinking": "".join(part.text for part in thoughts),
        "calls": [(call.name, call.arguments) for call in reply.item.calls],
        "signatures": reply.item.model_dump_json().count('"thoughtSignature"'),
        "id": reply.request_metadata.get("response_id"),
        "stop": reply.request_metadata["provider_stop_reason"],
        "usage": reply.usage,
    }


def _known(answer: dict[str, Any]) -> dict[str, Any]:
    """Without fields of the API that this version of the SDK has no type for."""
    usage = {name: value for name, value in answer.get("usageMetadata", {}).items() if name != "serviceTier"}
    return {**answer, "usageMetadata": usage}
