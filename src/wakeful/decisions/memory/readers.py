"""Whose entries a turn finds, and whose its own become: by the message that it begins with.

the message                                     finds                               leaves entries of
of a principal P                                the agent's own, and P's            P
the operator's word                             everything                          the operator
the runtime's, with nothing lower behind it     everything                          the agent
anybody's: a channel, a webhook, what follows   the agent's own                     the agent
"""

from wakeful.contracts.authority import lowest
from wakeful.contracts.events import MessageAdmitted
from wakeful.contracts.memory import OPERATOR
from wakeful.decisions.policy.provenance import is_instruction

EVERYBODY = None
"""For a reader of this kind nothing is left out."""


def whose(message: MessageAdmitted) -> frozenset[str] | None:
    """Of whom a turn finds entries; blank is the agent itself. None: everybody."""
    if message.principal:
        return frozenset({"", message.principal})
    return EVERYBODY if is_instruction(_behind(message)) else frozenset({""})


def belongs_to(message: MessageAdmitted) -> str:
    """Whose the entries of a turn are; blank: the agent's."""
    return message.principal or (OPERATOR if _behind(message) == "operator_instruction" else "")


def _behind(message: MessageAdmitted) -> str:
    return lowest((message.authority_class, message.derived_from or message.authority_class))
