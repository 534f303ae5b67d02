"""The catalogue of a turn's tools: each with what policy says about it, and none left out without a word.

What nobody declared is shown at its worst: not read-only, not safe beside others, destructive where it writes or runs
commands, and nothing that an interruption ends.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from wakeful.contracts.tool_catalog import CatalogEntry, CatalogOwner, CatalogPolicy, ToolCatalog
from wakeful.contracts.tools import PREVIEW_CHARS, WRITING_FLAGS, Confinement, ToolDeclaration
from wakeful.contracts.verdicts import Verdict, combined
from wakeful.decisions.kept_results import KeptResults
from wakeful.decisions.policy.permissions import capabilities_of, confinement_verdict
from wakeful.decisions.policy.verdict import CompiledPolicy, ToolPlan, standing_verdict

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
Asks: TypeAlias = Literal["always", "sometimes"]
"""Which of its calls a tool wants a person for, of its own accord."""
_OURS = frozenset({"local", "subagent", "workflow"})
"""Who runs these tools is this program."""
MAX_INLINE_SCHEMA = 8_000
"""Bytes; a larger schema is kept apart, and its entry refers to it."""


class MissingTool(Protocol):
    """A tool that exists and cannot be had now."""

    @property
    def name(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def status(self) -> Literal["denied", "unavailable"]: ...


def resolve_catalog(
    policy: CompiledPolicy,
    withheld: Iterable[MissingTool] = (),
    *,
    now: float,
    confined: Mapping[str, Confinement] | None = None,
    asks: Mapping[str, Asks] | None = None,
) -> tuple[CatalogEntry, ...]:
    """Every tool the policy was compiled for, then those that are missing; each name once.

    `now` is in Unix seconds: rules expire. `confined` says what a tool's calls are held to, `asks` which tools want a
    person of their own accord.
    """
    entries: dict[str, CatalogEntry] = {}
    for name, plan in policy.plans.items():
        verdict = standing_verdict(plan, now)
        verdict = _with_own_wish(plan, verdict, (asks or {}).get(name), now)
        held = confinement_verdict(policy.source.tools, name, (confined or {}).get(name))
        if held is not None and not held.allowed:
            verdict = combined((verdict, held))
        entries[name] = entry_of(plan.declaration, verdict, (confined or {}).get(name))
    for missing in withheld:
        entries.setdefault(
            missing.name,
            CatalogEntry(
                tool_name=missing.name,
                description=summary(missing.description),
                input_schema={},
                policy=missing.status,
                policy_reason=summary(missing.reason) or "it cannot be had now",
                runtime_owner="mcp_server" if missing.name.startswith("mcp.") else "local",
            ),
        )
    return tuple(entries.values())


def _with_own_wish(plan: ToolPlan, verdict: Verdict, wish: Asks | None, now: float) -> Verdict:
    """A tool that asks before every call asks; one that asks before some says so."""
    name = plan.declaration.name
    if wish is None or verdict.decision == "deny":
        return verdict
    if wish == "sometimes":
        return replace(verdict, reason=f"{verdict.reason}; it asks before some calls, by their arguments")
    ask = combined((verdict, Verdict("ask", "mode", f"{name} asks before every call", layer="person")))
    return plan.rules.standing_answer(ask, now) or ask


def entry_of(declaration: ToolDeclaration, verdict: Verdict, confinement: Confinement | None = None) -> CatalogEntry:
    """One tool as people are shown it."""
    capabilities = capabilities_of(declaration)
    said = declaration.model_fields_set
    writes = not WRITING_FLAGS.isdisjoint(capabilities)
    outside = declaration.runtime_owner not in _OURS
    return CatalogEntry(
        tool_name=declaration.name,
        description=summary(declaration.description),
        input_schema=declaration.input_schema,
        capabilities=capabilities,
        policy=_policy(verdict, confinement),
        policy_reason=_reason(verdict, confinement),
        runtime_owner=_owner(declaration),
        sandbox=confinement,
        is_read_only=declaration.is_read_only,
        # Our own tools are safe beside others unless they say otherwise; what runs elsewhere only when it says so.
        is_concurrency_safe=not declaration.serial and not (outside and "parallel_safe" not in said),
        is_destructive=declaration.is_destructive or (writes and "effect" not in said),
        interrupt_behavior=declaration.interrupt_behavior if "interrupt_behavior" in said else "block",
        declares_nothing=_declares_nothing(declaration),
    )


def _declares_nothing(declaration: ToolDeclaration) -> bool:
    """A function of somebody's that acts, and of which nothing else is known."""
    if declaration.is_read_only or declaration.external or declaration.runtime_owner != "local":
        return False
    told = (declaration.reads_private, declaration.leaves_machine, declaration.content, declaration.capabilities)
    classed = declaration.permission_class is not None or declaration.changes_state is not None
    return declaration.untrusted is None and not classed and not any(told)


def kept_apart(declaration: ToolDeclaration) -> dict[str, bytes]:
    """What of a tool does not stand in its entry, by the field that refers to it.

    A large schema; and what else was declared, where the summary is not all of its description or names of sensitive
    parameters are among it.
    """
    apart: dict[str, bytes] = {}
    schema = _encoded(declaration.input_schema)
    if len(schema) > MAX_INLINE_SCHEMA:
        apart["input_schema_ref"] = schema
    words = " ".join(declaration.description.split())
    if declaration.sensitive_parameters or summary(declaration.description) != words:
        apart["metadata_ref"] = _encoded(declaration.model_dump(mode="json", exclude={"input_schema"}))
    return apart


class CatalogRecord(NamedTuple):
    """A catalogue as it is put on record: what is large or private of a tool is kept apart, and referred to."""

    encoded: bytes
    apart: tuple[bytes, ...]
    """What it refers to, by digest."""


_records: KeptResults[CatalogRecord] = KeptResults()


def record_once(catalog: ToolCatalog, declarations: Sequence[ToolDeclaration]) -> CatalogRecord:
    """`catalog_record`, done once for the same objects."""
    return _records.of((catalog, *declarations), lambda: catalog_record(catalog, declarations))


def catalog_record(catalog: ToolCatalog, declarations: Sequence[ToolDeclaration]) -> CatalogRecord:
    """The catalogue with references to what these tools have kept apart."""
    declared = {declaration.name: declaration for declaration in declarations}
    entries: list[CatalogEntry] = []
    every: list[bytes] = []
    for entry in catalog.entries:
        tool = declared.get(entry.tool_name)
        apart = kept_apart(tool) if tool is not None else {}
        refs = {name: f"sha256:{hashlib.sha256(data).hexdigest()}" for name, data in apart.items()}
        entries.append(referring(entry, refs))
        every += apart.values()
    shown = catalog.model_copy(update={"entries": tuple(entries)}) if every else catalog
    return CatalogRecord(shown.model_dump_json(exclude_defaults=True).encode(), tuple(every))


def referring(entry: CatalogEntry, refs: Mapping[str, str]) -> CatalogEntry:
    """The entry, with where the rest of it is in the place of what is not inline."""
    inline = {"input_schema": None} if "input_schema_ref" in refs else {}
    return entry.model_copy(update={**inline, **refs}) if refs else entry


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8", "replace")


def summary(text: str) -> str:
    """The first paragraph on one line, without anything that moves a cursor, and not too long."""
    first = re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0]
    line = " ".join(_CONTROL.sub(" ", first).split())
    return line if len(line) <= PREVIEW_CHARS else line[: PREVIEW_CHARS - 1] + "…"


def _policy(verdict: Verdict, confinement: Confinement | None) -> CatalogPolicy:
    if verdict.decision != "allow":
        return "denied" if verdict.decision == "deny" else "ask"
    return "sandboxed" if confinement is not None and confinement.mode != "not_enforced" else "allowed"


def _reason(verdict: Verdict, confinement: Confinement | None) -> str:
    """Why, and what holds its calls: that nothing does is said wherever the tool is shown."""
    if confinement is None or verdict.decision == "deny":
        return verdict.reason
    why = f" ({summary(confinement.reason)})" if confinement.reason else ""
    return f"{verdict.reason}; its calls are held by {confinement.mode}{why}"


def _owner(declaration: ToolDeclaration) -> CatalogOwner:
    # The runtime standard has no word for a client's own tool; it is reached through a connection like a hosted one.
    owner = declaration.runtime_owner
    return "hosted_connector" if owner == "client" else owner
