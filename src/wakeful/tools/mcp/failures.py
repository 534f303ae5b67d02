"""What can go wrong between here and a server, by what is known of the call afterwards."""


class ServerProblem(Exception):
    """Words for whoever asked; no secret of the connection stands in them."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NotReached(ServerProblem):
    """The request did not get to the server: nothing has happened there."""


class SessionGone(NotReached):
    """The server has forgotten this session, and says so: a new one may ask again."""


class AnswerLost(ServerProblem):
    """The request went out and its answer will not come: what happened there is not known."""


class AnswerLate(AnswerLost):
    """The answer did not come in time."""


class ServerRefusal(ServerProblem):
    """The server answered with an error."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class BadAnswer(ServerProblem):
    """The server answered, and not as the protocol or its own schema says."""


class ToolDrift(ServerProblem):
    """The tool is not what was offered: nothing was sent."""
