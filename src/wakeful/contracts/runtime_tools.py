"""A tool call that somebody outside answers: `RuntimeToolRequest`, and the `RuntimeToolResult` that comes back.

A request keeps its identity from the moment it is made: its id follows from run, tool and call. It ends once, with a
result or with a timeout; a cancel is the same end as a timeout. A result that names another request or another tool is
refused, never bent to fit.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic import Field, model_validator

from wakeful.contracts.citations import with_safe_citations
from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.runtime_metadata import normalise_runtime
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value

INVALID_REQUEST = "invalid_runtime_tool_request"
INVALID_RESULT = "invalid_runtime_tool_result"
INVALID_STORE = "invalid_runtime_tool_store"
INVALID_CONTINUATION = "invalid_runtime_tool_continuation"
NOT_FOUND = "runtime_tool_request_not_found"
PENDING: Literal["runtime_tool_pending"] = "runtime_tool_pending"
COMPLETED: Literal["runtime_tool_completed"] = "runtime_tool_completed"
TIMEOUT: Literal["runtime_tool_timeout"] = "runtime_tool_timeout"
RequestStatus: TypeAlias = Literal["runtime_tool_pending", "runtime_tool_completed", "runtime_tool_timeout"]
DEFAULT_ERROR = "The runtime tool failed and did not say why."


class RuntimeToolRequest(Value):
    """A call that waits for somebody outside."""

    status: RequestStatus = PENDING
    request_id: str = Field(min_length=1)
    tool_name: str = Field(min_length=1)
    tool_call_id: str = Field(min_length=1)
    parameters: JsonDict = {}
    run_id: str = ""
    timeout_at: str = ""
    """ISO 8601; empty: it waits for as long as the run does."""
    runtime: JsonDict = {}
    metadata: JsonDict = {}
    """`turn_count` and the caller's own."""

    @classmethod
    def normalise(cls, raw: "RuntimeToolRequest | Mapping[str, Any]") -> "RuntimeToolRequest":
        """Raises InvalidValue `invalid_runtime_tool_request` naming the field."""
        if not isinstance(raw, Mapping):
            return validated(cls, raw, INVALID_REQUEST)
        fields = {name: value for name, value in raw.items() if value is not None}
        if "runtime" in fields:
            fields["runtime"] = normalise_runtime(fields["runtime"])
        if not fields.get("request_id"):
            named = (fields.get("run_id", ""), fields.get("tool_name"), fields.get("tool_call_id"))
            for name, value in zip(("tool_name", "tool_call_id"), named[1:], strict=True):
                if not isinstance(value, str) or not value:
                    raise InvalidValue(INVALID_REQUEST, name, f"expected a text that is not empty, not {value!r}")
            fields["request_id"] = request_id(str(named[0]), str(named[1]), str(named[2]))
        return validated(cls, fields, INVALID_REQUEST)

    @property
    def is_pending(self) -> bool:
        return self.status == PENDING

    @property
    def tool(self) -> str:
        return self.tool_name

    @property
    def call_id(self) -> str:
        return self.tool_call_id

    @property
    def turn_id(self) -> str:
        return self.run_id

    @property
    def arguments(self) -> dict[str, Any]:
        return self.parameters

    def named(self) -> dict[str, Any]:
        """As JSON for a client, under the names that approvals and calls have, too."""
        names = {name: getattr(self, name) for name in ("tool", "call_id", "turn_id", "arguments")}
        return {**self.model_dump(mode="json"), **names}

    def settled(self, status: RequestStatus) -> "RuntimeToolRequest":
        """The same request at its end."""
        return self.model_copy(update={"status": status})


class RuntimeToolResult(Value):
    """The answer of a client."""

    status: Literal["runtime_tool_submitted"] = "runtime_tool_submitted"
    request_id: str = Field(min_length=1)
    tool_name: str = Field(min_length=1)
    success: bool = Field(True, strict=True)
    metadata: JsonDict = {}
    """Citations in it are normalised."""
    result: JsonDict | None = None
    """On success."""
    error: str | None = None
    """On failure."""

    @model_validator(mode="after")
    def _one_of_both(self) -> "RuntimeToolResult":
        if self.success and (self.result is None or self.error is not None):
            raise ValueError("a successful result has `result` and no `error`")
        if not self.success and (self.error is None or self.result is not None):
            raise ValueError("a failed result has `error` and no `result`")
        return self

    @classmethod
    def normalise(
        cls, raw: "RuntimeToolResult | Mapping[str, Any]", request: RuntimeToolRequest | None = None
    ) -> "RuntimeToolResult":
        """A result from outside; with `request`, one that answers it. Raises InvalidValue naming the field."""
        fields = raw.model_dump(exclude_none=True) if isinstance(raw, RuntimeToolResult) else raw
        if not isinstance(fields, Mapping):
            raise InvalidValue(INVALID_RESULT, "", f"expected an object, not a {type(raw).__name__}")
        given = {name: value for name, value in fields.items() if value is not None or name == "result"}
        for name in ("request_id", "tool_name") if request is not None else ():
            stored = getattr(request, name)
            if given.get(name) not in (None, "", stored):
                raise InvalidValue(INVALID_RESULT, name, f"{given[name]!r} is not {stored!r}, which was asked for")
            given[name] = stored
        success = given.setdefault("success", True)
        if success is False:
            words = given.get("error")
            given["error"] = words if isinstance(words, str) and words.strip() else DEFAULT_ERROR
            given.pop("result", None)
        else:
            given.pop("error", None)
            answer = given.get("result", {})
            given["result"] = answer if isinstance(answer, Mapping) else {"value": answer}
        metadata = given.get("metadata", {})
        given["metadata"] = with_safe_citations(metadata) if isinstance(metadata, Mapping) else metadata
        return validated(cls, given, INVALID_RESULT)

    def to_tool_result(self, runtime: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """As the normalised result of a tool call."""
        done: dict[str, Any] = {"success": self.success, "tool_name": self.tool_name, "metadata": dict(self.metadata)}
        if self.success:
            done["result"] = self.result
        else:
            done["error"] = self.error
        return {**done, "runtime": dict(runtime)} if runtime else done


def request_id(run_id: str, tool_name: str, tool_call_id: str) -> str:
    """The same for the same call, whoever asks. Lengths stand between the parts: no two calls run together."""
    named = "\0".join(f"{len(part)}:{part}" for part in (run_id, tool_name, tool_call_id))
    return "runtime-tool-" + hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()


def timed_out(request: RuntimeToolRequest, *, cancelled: bool = False) -> RuntimeToolResult:
    """The failed result of a request that nobody answered."""
    words = "was cancelled" if cancelled else "was not answered in time"
    return RuntimeToolResult(
        request_id=request.request_id,
        tool_name=request.tool_name,
        success=False,
        error=f"Runtime tool '{request.tool_name}' {words}",
        metadata={"status": TIMEOUT, "error_type": TIMEOUT, **({"cancelled": True} if cancelled else {})},
    )
