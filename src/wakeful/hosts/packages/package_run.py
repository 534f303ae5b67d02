"""Runs of portable packages: the request, the result, and the words for what can go wrong with a bundle.

The core owns these envelopes. The host defines what a package is and how it runs.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from pydantic import Field

from wakeful.contracts.errors import InvalidValue
from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.validation import validated
from wakeful.contracts.values import Value

INVALID_REQUEST = "runtime_package_run_invalid_request"
MISSING_PACKAGE = "runtime_package_run_missing_package"
MISSING_WORKFLOW = "runtime_package_run_missing_workflow"
INVALID_RESULT = "runtime_package_run_invalid_result"
NO_HANDLER = "runtime_package_run_no_handler"
NOT_FOUND = "runtime_package_run_not_found"
ALREADY_STARTED = "runtime_package_run_already_started"
HANDLER_FAILED = "runtime_package_run_failed"

SPEC_INVALID = "runtime_bundle_spec_invalid"
UNCLAIMED = "runtime_bundle_unclaimed"
SOURCE_UNREADABLE = "runtime_bundle_source_unreadable"
SOURCE_READ_FAILED = "runtime_bundle_source_read_failed"
SOURCE_INVALID_JSON = "runtime_bundle_source_invalid_json"
SOURCE_INVALID_SHAPE = "runtime_bundle_source_invalid_shape"
MISSING_AGENT_SLUG = "runtime_bundle_missing_agent_slug"
REGISTRY_UNAVAILABLE = "runtime_bundle_registry_unavailable"
AGENT_EXISTS = "runtime_bundle_agent_exists"
REGISTER_FAILED = "runtime_bundle_register_failed"

OnConflict: TypeAlias = Literal["error", "skip", "upgrade"]
CONFLICTS: tuple[OnConflict, ...] = get_args(OnConflict)
SOURCE_TYPE = "runtime-agent-package"
PackageStatus: TypeAlias = Literal["pending", "running", "succeeded", "failed", "cancelled", "skipped"]
OVER: frozenset[PackageStatus] = frozenset({"succeeded", "failed", "cancelled", "skipped"})


class PackageRunRequest(Value):
    """A request to run a workflow of a package."""

    package: JsonDict
    workflow: JsonDict
    input: JsonDict = {}
    options: JsonDict = {}
    metadata: JsonDict = {}
    replay: JsonDict = {}
    run_id: str = Field(min_length=1)

    @classmethod
    def normalise(cls, raw: Mapping[str, Any], new_id: Callable[[str], str]) -> "PackageRunRequest":
        """Raises InvalidValue with the code of what is missing. `new_id` makes `runtime_run_...`."""
        if not isinstance(raw, Mapping):
            raise InvalidValue(INVALID_REQUEST, "", f"expected an object, not a {type(raw).__name__}")
        fields = {name: value for name, value in raw.items() if value is not None}
        for name in ("package", "workflow", "options"):
            if not isinstance(fields.setdefault(name, {}), Mapping):
                raise InvalidValue(INVALID_REQUEST, name, f"expected an object, not a {type(fields[name]).__name__}")
        package, workflow = dict(fields["package"]), fields["workflow"]
        if not _word(package.get("slug")) and _word(package.get("id")):
            package["slug"] = package["id"]
        if not _word(package.get("source")) and not _word(package.get("slug")):
            raise InvalidValue(MISSING_PACKAGE, "package", "source or slug is needed, to say which package it is")
        if not _word(workflow.get("id")) and not workflow.get("spec"):
            raise InvalidValue(MISSING_WORKFLOW, "workflow", "id or spec is needed, to say what of the package is run")
        run_id = fields.get("run_id") or new_id("runtime_run")
        options = {**fields["options"], "run_id": run_id}
        return validated(cls, {**fields, "package": package, "options": options, "run_id": run_id}, INVALID_REQUEST)


class PackageRunResult(Value):
    """The result of such a run. Its status is always given."""

    status: PackageStatus
    run_id: str = Field(min_length=1)
    result: JsonDict = {}
    error: JsonDict = {}
    artifact_refs: list[JsonDict] = []
    evidence_refs: list[JsonDict] = []
    metadata: JsonDict = {}
    replay: JsonDict = {}

    @property
    def is_over(self) -> bool:
        return self.status in OVER

    @classmethod
    def normalise(cls, raw: object, run_id: str) -> "PackageRunResult":
        """Raises InvalidValue `runtime_package_run_invalid_result`. The id is the run's, whatever a handler said."""
        fields = raw.model_dump() if isinstance(raw, PackageRunResult) else raw
        if not isinstance(fields, Mapping):
            raise InvalidValue(INVALID_RESULT, "", f"expected an object, not a {type(raw).__name__}")
        given = {name: value for name, value in fields.items() if value is not None}
        return validated(cls, {**given, "run_id": run_id}, INVALID_RESULT)


def _word(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
