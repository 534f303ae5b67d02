"""Streams to decode: recorded ones where they are at hand, and one of our own for each format.

The recordings stand beside the repository where it is developed and are no part of it. Our own streams have the fields
that the providers send, in their order, and as many deltas as are asked for.
"""

import json
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).resolve().parents[3] / "shared" / "recordings"
WORDS = ("The", " store", " keeps", " what", " was", " said", ",", " one", " fact", " after", " another", ".", "\n\n")


def recorded(*folders: str) -> list[bytes]:
    """Every recorded answer that is a stream."""
    found = []
    for path in sorted(path for folder in folders for path in (RECORDINGS / folder).glob("*.json")):
        for exchange in json.loads(path.read_text())["interactions"]:
            body = exchange["response"]["body"]
            if exchange["response"]["status"] == 200 and "\n\n" in body:
                found.append(body.encode())
    return found


def pieces(stream: bytes) -> list[bytes]:
    """One event a piece, which is how providers send them."""
    return [event + b"\n\n" for event in stream.split(b"\n\n") if event]


def text(deltas: int) -> str:
    """What the stream of so many deltas says."""
    return "".join(_words(deltas))


def _words(deltas: int) -> list[str]:
    return [WORDS[at % len(WORDS)] for at in range(deltas)]


def _named(events: list[dict[str, Any]]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {_compact(event)}\n\n".encode() for event in events)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def chat(deltas: int) -> bytes:
    shared = {
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
        "object": "chat.completion.chunk",
        "created": 1741569952,
        "model": "bench-1",
        "service_tier": "default",
        "system_fingerprint": "fp_44709d6fcb",
    }

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**shared, "choices": [choice], "usage": None, "obfuscation": "x7Kd2mQp"}

    details = {"prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}}
    usage = {"prompt_tokens": 20, "completion_tokens": deltas, "total_tokens": 20 + deltas, **details}
    chunks = [
        chunk({"role": "assistant", "content": "", "refusal": None}),
        *(chunk({"content": word}) for word in _words(deltas)),
        chunk({}, "stop"),
        {**shared, "choices": [], "usage": usage, "obfuscation": "Yh"},
    ]
    return b"".join(f"data: {_compact(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"


def responses(deltas: int) -> bytes:
    where = {"item_id": "msg_68af4030baa48193b0b43b4c2a176a1a", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text(deltas)}
    message = {"id": where["item_id"], "type": "message", "role": "assistant", "phase": "final_answer"}
    done = {**message, "status": "completed", "content": [part]}
    response: dict[str, Any] = {
        "id": "resp_68af4030592c81938ec0a5fbab4a3e9f",
        "object": "response",
        "created_at": 1756315696,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": "bench-1",
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": "medium", "summary": None},
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
    }
    usage = {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": deltas,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 20 + deltas,
    }
    said = {"delta": "", "logprobs": [], "obfuscation": "x7Kd2mQp"}
    events = [
        {"type": "response.created", "response": response},
        {"type": "response.in_progress", "response": response},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**message, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **where, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **where, **said, "delta": word} for word in _words(deltas)),
        {"type": "response.output_text.done", **where, "text": text(deltas), "logprobs": []},
        {"type": "response.content_part.done", **where, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": [done], "usage": usage},
        },
    ]
    return _named([{**event, "sequence_number": at} for at, event in enumerate(events)])


def anthropic(deltas: int) -> bytes:
    usage = {
        "input_tokens": 20,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 1,
        "service_tier": "standard",
    }
    message = {
        "model": "bench-1",
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    words = [{"type": "text_delta", "text": word} for word in _words(deltas)]
    return _named(
        [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "ping"},
            *({"type": "content_block_delta", "index": 0, "delta": word} for word in words),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ended, "usage": {**usage, "output_tokens": deltas}},
            {"type": "message_stop"},
        ]
    )
