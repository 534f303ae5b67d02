"""A Responses API that answers what it was told to, in process, and remembers what it was asked."""

import json
from collections.abc import Sequence
from typing import Any

import httpx2

from kit.wires.responses_wire import events_of, sse


class ResponsesServer:
    """Gives one answer a request, in order: a response as it ends, or an HTTP answer."""

    def __init__(self, *answers: "dict[str, Any] | httpx2.Response") -> None:
        self._answers = list(answers)
        self.bodies: list[dict[str, Any]] = []
        self.requests: list[httpx2.Request] = []
        self.client = httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        self.requests.append(request)
        self.bodies.append(body)
        answer = self._answers.pop(0)
        if isinstance(answer, httpx2.Response):
            return answer
        if body["stream"]:
            return streamed(sse(events_of(answer)))
        return httpx2.Response(200, json=answer, headers={"x-request-id": "req_1"})

    @property
    def inputs(self) -> Sequence[list[dict[str, Any]]]:
        return [body["input"] for body in self.bodies]


def streamed(content: bytes) -> httpx2.Response:
    """An answer that streams."""
    headers = {"content-type": "text/event-stream; charset=utf-8", "x-request-id": "req_1"}
    return httpx2.Response(200, headers=headers, content=content)
