"""Where a call comes from: who the turn derives from, what the turn has seen, what the tool does.

The rule: in one turn at most two of *untrusted input*, *private data*, and *a change of state or outward traffic*. The
call that would make it three needs a person, and once it is three every call that acts does. No text is looked at to
find out whether it is dangerous; only structure counts.

`Exposure` is what a turn has seen. It only grows, and it follows from facts: each call that was let through adds what
its tool does (`exposed`), a child adds what the child saw (`merged`).
"""

from dataclasses import dataclass
from typing import Any

from wakeful.contracts.policies import ProvenancePolicy
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.verdicts import Verdict, combined
from wakeful.decisions.policy.permissions import class_of, server_of

_INSTRUCTIONS = frozenset({"operator_instruction", "runtime_instruction"})
"""Every other input is untrusted: an integration's signal has a verified sender, and who wrote what it carries is not
known."""
_ELSEWHERE = frozenset({"mcp_server", "client", "hosted_connector", "provider_native"})
_LEAVES = frozenset({"client", "hosted_connector", "provider_native"})
_CHILDREN = frozenset({"subagent", "workflow"})


@dataclass(frozen=True, slots=True)
class ToolDoes:
    """What a tool does, as far as the gate cares."""

    reads_private: bool = False
    changes_state: bool = True
    leaves_machine: bool = False
    """A GET leaves the machine."""
    untrusted_result: bool = False
    """Its results may have been written by anybody."""

    @property
    def acts(self) -> bool:
        return self.changes_state or self.leaves_machine


@dataclass(frozen=True, slots=True)
class Exposure:
    """What a turn has seen and done: for each of the three, the first cause, or nothing."""

    untrusted: str = ""
    private: str = ""
    acted: str = ""


NOTHING_SEEN = Exposure()


def what_it_does(declaration: ToolDeclaration) -> ToolDoes:
    """From the declaration; what runs elsewhere is taken to bring in anybody's words.

    A child's result counts as untrusted. Who knows what the child saw merges that instead (`merged`).
    """
    known = _worked_out.get(id(declaration))
    if known is None or known[0] is not declaration:
        if len(_worked_out) >= MOST_WORKED_OUT:
            _worked_out.clear()
        known = _worked_out[id(declaration)] = declaration, _what_it_does(declaration)
    return known[1]


MOST_WORKED_OUT = 4096
_worked_out: dict[int, tuple[ToolDeclaration, ToolDoes]] = {}
"""By the declaration's identity; it is kept beside it, so that its id cannot be taken by another."""


def _what_it_does(declaration: ToolDeclaration) -> ToolDoes:
    owner, kind = declaration.runtime_owner, class_of(declaration)
    leaves = declaration.reaches_out or kind == "network" or owner in _LEAVES
    return ToolDoes(
        reads_private=declaration.reads_private or kind == "secrets",
        changes_state=not declaration.is_read_only,
        leaves_machine=leaves,
        untrusted_result=leaves
        or declaration.external
        or owner in _ELSEWHERE
        or owner in _CHILDREN
        or server_of(declaration) is not None,
    )


def joined(one: ToolDoes, other: ToolDoes) -> ToolDoes:
    """Everything that either does."""
    return ToolDoes(
        one.reads_private or other.reads_private,
        one.changes_state or other.changes_state,
        one.leaves_machine or other.leaves_machine,
        one.untrusted_result or other.untrusted_result,
    )


def begun(derived_from: str) -> Exposure:
    """A turn's exposure before its first call: its own input may be untrusted already."""
    return (
        NOTHING_SEEN if derived_from in _INSTRUCTIONS else Exposure(untrusted=f"the turn's own input: {derived_from}")
    )


def exposed(exposure: Exposure, tool: str, does: ToolDoes) -> Exposure:
    """After a call of this tool was let through."""
    after = Exposure(
        exposure.untrusted or (tool if does.untrusted_result else ""),
        exposure.private or (tool if does.reads_private else ""),
        exposure.acted or (tool if does.acts else ""),
    )
    return exposure if after == exposure else after


def merged(exposure: Exposure, child: Exposure) -> Exposure:
    """After a child reported: its output is as untrusted as what it read."""
    return Exposure(
        exposure.untrusted or child.untrusted, exposure.private or child.private, exposure.acted or child.acted
    )


def provenance_gate(
    derived_from: str,
    does: ToolDoes,
    exposure: Exposure = NOTHING_SEEN,
    *,
    tool: str = "the tool",
    policy: ProvenancePolicy | None = None,
) -> Verdict | None:
    """What provenance has to say against a call; None when it has nothing to say.

    `derived_from` is the lowest authority in the chain of causes of the turn. One that nobody knows counts as the
    lowest there is.
    """
    settings = policy or _DEFAULT
    instructed = derived_from in _INSTRUCTIONS
    if instructed and not exposure.untrusted and not does.untrusted_result:
        return None  # nothing untrusted is near: the way nearly every call goes
    evidence = not instructed and derived_from != "integration_signal"
    found: list[Verdict] = []
    if evidence and does.acts and settings.external_evidence != "allow":
        verb = "changes something" if does.changes_state else "leaves the machine"
        found.append(
            _said(
                settings.external_evidence,
                f"the turn derives from {derived_from}, which is no one's instruction, and {tool} {verb}",
                "provenance:external_evidence",
            )
        )
    three = _all_three(does, exposure, not instructed, tool)
    if three:
        found.append(_said(settings.all_three, three, "provenance:all_three"))
    return combined(found) if found else None


def _all_three(does: ToolDoes, exposure: Exposure, untrusted_turn: bool, tool: str) -> str:
    """Why this call would have all three in one turn, or nothing."""
    untrusted = exposure.untrusted or ("the turn's own input" if untrusted_turn else "")
    had_three = bool(untrusted and exposure.private and exposure.acted)
    after = exposed(Exposure(untrusted, exposure.private, exposure.acted), tool, does)
    if not (after.untrusted and after.private and after.acted):
        return ""
    if had_three and not does.acts:
        return ""  # a person has answered for the three; a call that does nothing outside adds nothing to them
    return (
        f"with {tool} this turn has all three: untrusted input ({after.untrusted}), private data ({after.private}), "
        f"and a change of state or outward traffic ({after.acted if not does.acts else tool})"
    )


def _said(decision: Any, reason: str, ref: str) -> Verdict:
    # Whoever answered for the tool did not answer for what an outsider makes of it: only the very call counts.
    return Verdict(decision, "mode", reason, (ref,), "provenance", standing_answer="exact")


_DEFAULT = ProvenancePolicy()
