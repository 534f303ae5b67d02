"""What a supervisor and a runtime say to each other, over a socket: frames of one kind, a length and so many bytes.

The standard library and nothing else: a supervisor loads it.
"""

import json
import struct
from collections.abc import Iterator
from typing import Any

MESSAGE, INPUT, STDOUT, STDERR = b"m", b"i", b"o", b"e"
"""A message is a JSON object. Input goes to the command; the other two come from it."""
MOST_BYTES = 1024 * 1024
"""Of one frame. Whoever sends more is not one of ours."""
CONTROL = "control"
"""The name of a task's socket in its folder."""
KEY = "key"
"""The name of the file there with what a caller has to say first."""
END = "end.json"
"""The name of the file there that says how the command ended."""
_HEAD = struct.Struct(">cI")


class BadFrame(Exception):
    """The other side does not speak this."""


def frame(kind: bytes, data: bytes) -> bytes:
    return _HEAD.pack(kind, len(data)) + data


def message(**said: Any) -> bytes:
    return frame(MESSAGE, json.dumps(said).encode())


class FrameReader:
    """Bytes in, whole frames out."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The frames that are whole now: kind and content. Raises BadFrame."""
        self._rest += data
        while len(self._rest) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._rest)
            if length > MOST_BYTES or kind not in (MESSAGE, INPUT, STDOUT, STDERR):
                raise BadFrame(f"a frame of kind {kind!r} with {length:,} bytes")
            if len(self._rest) < _HEAD.size + length:
                return
            content = bytes(self._rest[_HEAD.size : _HEAD.size + length])
            del self._rest[: _HEAD.size + length]
            yield kind, content


def read_message(content: bytes) -> dict[str, Any]:
    """Raises BadFrame for anything but an object."""
    try:
        said = json.loads(content)
    except ValueError as problem:
        raise BadFrame(f"a message that is not JSON: {problem}") from problem
    if not isinstance(said, dict):
        raise BadFrame("a message that is not an object")
    return said
