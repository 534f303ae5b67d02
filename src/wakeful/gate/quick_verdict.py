"""A quick yes for calls about which nobody has anything to say: no rule, person, hook, predicate, lock or confinement,
and nothing untrusted near.

It may only ever say yes where the whole gate lets the call through with `NOTHING_AGAINST`. What depends on the call is
looked at each time; the policy's part is remembered by what it rests on (`turn_policy.Circumstances`). Arguments are
validated before, as for any call. A replay judges by the whole gate, and so holds every quick yes to it.
"""

from wakeful.gate.call_at_gate import CallAtGate
from wakeful.gate.turn_gate import GateParts
from wakeful.gate.turn_policy import Circumstances, TurnPolicy


class QuickVerdict:
    """Of one turn."""

    def __init__(self, policy: TurnPolicy) -> None:
        self._policy = policy
        self._known: dict[str, tuple[Circumstances, bool]] = {}
        """By the tool's name, the newest."""

    def __call__(self, at: CallAtGate, parts: GateParts) -> bool:
        """Is nothing against this call? False: the whole gate says. Who is heard when a person is asked has no part
        in it: nobody is asked."""
        declaration = at.declaration
        if (
            parts.consult
            or at.call.pending is not None
            or at.confinement is not None
            or at.tool.may_ask
            or declaration.locks
            or declaration.answered_by != "code"
        ):
            return False
        try:
            now = self._policy.circumstances(at)
            known = self._known.get(declaration.name)
            if known is None or known[0] != now:
                known = self._known[declaration.name] = now, self._policy.allows_every_call(at)
        except Exception:  # a policy that raises denies, and it is the whole gate that says so
            return False
        return known[1]
