"""What all wire formats share in writing a stream: events, and texts in pieces."""

import json
import re
from typing import Any

CREATED = 1_795_000_000
"""When every answer says it was made. A test that is run again gets the same bytes."""
SIGNATURE = "c2lnbmVkLWJ5LXRoZS1wcm92aWRlci1zZXJ2ZXI="
_WORDS = re.compile(r"\S+\s*|\s+")
_LONGEST = 4_000


def pieces(text: str) -> list[str]:
    """A text as it streams: in words, and a long one in larger pieces."""
    if len(text) > _LONGEST:
        step = -(-len(text) // 100)
        return [text[start : start + step] for start in range(0, len(text), step)]
    return _WORDS.findall(text)


def sse(data: Any, event: str = "", end: str = "\n\n") -> bytes:
    name = f"event: {event}\n" if event else ""
    return f"{name}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}{end}".encode()
