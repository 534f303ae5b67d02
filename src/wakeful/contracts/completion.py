"""What a completion policy says about a result."""

from wakeful.contracts.jsonable import JsonDict
from wakeful.contracts.values import Value


class CompletionDecision(Value):
    """Is the work done with this result? If not, `message` is a word for the model, when there is one."""

    complete: bool
    message: str = ""
    context: JsonDict = {}
    """The policy's own, for whoever reads the event."""
