"""Text as servers and people send it: a character may be cut in two, and no half of one may break what follows."""

import json
from typing import Any

from pydantic_core import from_json


def parsed(data: bytes) -> Any:
    """JSON. A parser that knows half characters is asked second, because it is slow. Raises ValueError."""
    try:
        return from_json(data)
    except ValueError:
        try:
            return json.loads(data)
        except RecursionError:
            raise ValueError("nested without end") from None


def dump(value: Any) -> bytes:
    """JSON without a needless byte. Half a surrogate pair, which UTF-8 cannot hold, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def mended(text: str) -> str:
    """Pieces put together: halves that belong together are a character again, others are replaced."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def showable(text: str) -> str:
    """One piece by itself, for eyes only."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def storable(value: Any) -> Any:
    """JSON data of which every text can be written."""
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, dict):
        return {mended(key): storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [storable(inner) for inner in value]
    return value
