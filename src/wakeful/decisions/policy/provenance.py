"""Where a call comes from: who the turn derives from, what the turn has seen, what the tool does, whose its arguments
are.

The rule, for a call in a turn that has untrusted input:

    the call                                    all arguments the owner's      a derived argument
    changes something outside the workspace     allowed                        a person
    leaves the machine, changes nothing         allowed                        a person, once private data was read
    stays in the workspace                      allowed                        allowed

No text is looked at to find out whether it is dangerous; only structure counts, and whether a value stands in the
owner's words (`argument_origins`). A call that changes something and has no argument at all that could be the owner's
counts as derived: nothing ties it to what the owner wanted.

`Exposure` is what a turn has seen. It only grows, and it follows from facts: each call that was let through adds what
its tool does (`exposed`). A turn and its children share one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wakeful.contracts.policies import ProvenancePolicy
from wakeful.contracts.tools import ToolDeclaration
from wakeful.contracts.verdicts import Verdict, combined
from wakeful.decisions.policy.argument_origins import Origins
from wakeful.decisions.policy.permissions import class_of, server_of

_INSTRUCTIONS = frozenset({"operator_instruction", "runtime_instruction"})
"""Every other input is untrusted: an integration's signal has a verified sender, and who wrote what it carries is not
known."""
_ELSEWHERE = frozenset({"mcp_server", "client", "hosted_connector", "provider_native"})
_LEAVES = frozenset({"client", "hosted_connector", "provider_native"})
_INSIDE = frozenset({"workspace_write", "execute", "knowledge", "subagent"})
"""Classes of tools that change nothing outside the workspace and the runtime, as long as nothing leaves the machine.
What a child does is judged call by call."""


@dataclass(frozen=True, slots=True)
class ToolDoes:
    """What a tool does, as far as the gate cares."""

    reads_private: bool = False
    changes_state: bool = True
    leaves_machine: bool = False
    """A GET leaves the machine."""
    untrusted_result: bool = False
    """Its results may have been written by anybody."""
    stays_inside: bool = False
    """What it changes is in the workspace, or the runtime's own, or the client's that runs it and can refuse."""
    runs_commands: bool = False
    """One call of it can read something, and act on what it read."""

    @property
    def acts(self) -> bool:
        return self.changes_state or self.leaves_machine

    @property
    def changes_outside(self) -> bool:
        return self.changes_state and not self.stays_inside


@dataclass(frozen=True, slots=True)
class Exposure:
    """What a turn has seen: for each of the two, the first cause, or nothing."""

    untrusted: str = ""
    private: str = ""


NOTHING_SEEN = Exposure()


def what_it_does(declaration: ToolDeclaration) -> ToolDoes:
    """From the declaration; what runs elsewhere is taken to bring in anybody's words, unless the declaration says no.

    A child brings in what it has read itself: it adds to the same exposure.
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
    of_server = server_of(declaration) is not None
    # A server's tool is of class `network` because it is a server's: whether it reaches out is what it declares.
    leaves = declaration.reaches_out or owner in _LEAVES or (kind == "network" and not of_server)
    untrusted = declaration.untrusted
    if untrusted is None:
        untrusted = leaves or declaration.external or owner in _ELSEWHERE or of_server
    elsewhere = declaration.external or of_server or owner in _ELSEWHERE
    return ToolDoes(
        reads_private=declaration.reads_private or kind == "secrets",
        changes_state=not declaration.is_read_only,
        leaves_machine=leaves,
        untrusted_result=untrusted,
        stays_inside=owner == "client" or (kind in _INSIDE and not leaves and not elsewhere),
        runs_commands=kind == "execute",
    )


def joined(one: ToolDoes, other: ToolDoes) -> ToolDoes:
    """Everything that either does."""
    return ToolDoes(
        one.reads_private or other.reads_private,
        one.changes_state or other.changes_state,
        one.leaves_machine or other.leaves_machine,
        one.untrusted_result or other.untrusted_result,
        one.stays_inside and other.stays_inside,
        one.runs_commands or other.runs_commands,
    )


def is_instruction(derived_from: str) -> bool:
    """Is it the owner's own word?"""
    return derived_from in _INSTRUCTIONS


def begun(derived_from: str) -> Exposure:
    """A turn's exposure before its first call: its own input may be untrusted already."""
    return (
        NOTHING_SEEN if derived_from in _INSTRUCTIONS else Exposure(untrusted=f"the turn's own input: {derived_from}")
    )


def exposed(exposure: Exposure, tool: str, does: ToolDoes) -> Exposure:
    """After a call of this tool was let through."""
    if (exposure.untrusted or not does.untrusted_result) and (exposure.private or not does.reads_private):
        return exposure
    return Exposure(
        exposure.untrusted or (tool if does.untrusted_result else ""),
        exposure.private or (tool if does.reads_private else ""),
    )


def merged(exposure: Exposure, other: Exposure) -> Exposure:
    """After something else was read."""
    return Exposure(exposure.untrusted or other.untrusted, exposure.private or other.private)


def provenance_gate(
    derived_from: str,
    does: ToolDoes,
    exposure: Exposure = NOTHING_SEEN,
    *,
    tool: str = "the tool",
    policy: ProvenancePolicy | None = None,
    origins: Callable[[], Origins] | None = None,
) -> Verdict | None:
    """What provenance has to say against a call; None when it has nothing to say.

    `derived_from` is the lowest authority in the chain of causes of the turn. One that nobody knows counts as the
    lowest there is. `origins` is asked only where it matters; without it every argument counts as derived.
    """
    settings = policy or _DEFAULT
    instructed = derived_from in _INSTRUCTIONS
    untrusted = exposure.untrusted or ("" if instructed else f"the turn's own input: {derived_from}")
    if not untrusted and does.runs_commands and does.untrusted_result and does.acts:
        untrusted = tool
    if not untrusted or not does.acts:
        return None  # nothing untrusted is near: the way nearly every call goes
    evidence = not instructed and derived_from != "integration_signal"
    found: list[Verdict] = []
    if evidence and settings.external_evidence != "allow":
        verb = "changes something" if does.changes_state else "leaves the machine"
        found.append(
            _said(
                settings.external_evidence,
                f"the turn derives from {derived_from}, which is no one's instruction, and {tool} {verb}",
                "provenance:external_evidence",
            )
        )
    private = exposure.private or (tool if does.reads_private else "")
    if does.changes_outside or (does.leaves_machine and private):
        why = _not_the_owners(does, origins() if origins is not None else None)
        if why:
            verb = "changes something outside the workspace" if does.changes_outside else "leaves the machine"
            read = f"untrusted input ({untrusted})" + (f" and private data ({private})" if private else "")
            reason = f"{tool} {verb} in a turn that has read {read}, and {why}"
            # Who lets evidence act has answered for what it asks for, and not for private data on top of it.
            if does.changes_outside and not (evidence and settings.external_evidence == "allow"):
                found.append(_said(settings.derived, reason, "provenance:derived"))
            if private:
                found.append(_said(settings.all_three, reason, "provenance:all_three"))
    return combined(found) if found else None


def _not_the_owners(does: ToolDoes, origins: Origins | None) -> str:
    """Why a call is not the owner's word, or nothing."""
    if origins is None:
        return "where its arguments come from is not known"
    if origins.derived:
        named = ", ".join(origins.derived)
        return f"{named} {'is' if len(origins.derived) == 1 else 'are'} not in the owner's words"
    if does.changes_outside and not origins.owned:
        return "none of its arguments is in the owner's words"
    return ""


def _said(decision: Any, reason: str, ref: str) -> Verdict:
    # Whoever answered for the tool did not answer for what an outsider makes of it: only the very call counts.
    return Verdict(decision, "mode", reason, (ref,), "provenance", standing_answer="exact")


_DEFAULT = ProvenancePolicy()
