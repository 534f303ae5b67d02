"""Models of providers, and what asking one costs."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from wakeful.contracts.content import File, Image
from wakeful.contracts.conversation import History
from wakeful.contracts.errors import ModelFailure
from wakeful.contracts.frames import ProviderPromptFrame
from wakeful.contracts.model_settings import ModelSettings, ToolChoice
from wakeful.contracts.models import ModelGlimpse, Reply, TokenUsage
from wakeful.contracts.tools import ServerTool, ToolDeclaration

if TYPE_CHECKING:
    from wakeful.contracts.events import CostEstimated, CostRecorded


@dataclass(slots=True)
class ModelRequest:
    """One request. `history` only ever grows: a provider encodes each item once (`History.encoded`)."""

    instructions: str
    history: History
    tools: Sequence[ToolDeclaration]
    turn_id: str
    step: int
    attempt: int
    answered: int
    """Model calls of this level that were answered: what a script is indexed by."""
    tool_choice: ToolChoice = "auto"
    """The tool choice of this request. The setting of that name is the caller's wish for the whole run."""
    settings: ModelSettings = field(default_factory=ModelSettings)
    server_tools: tuple[ServerTool, ...] = ()
    """Tools that the provider may run itself; the policy has allowed them."""
    withheld: tuple[str, ...] = ()
    """Settings of the caller that are not for this model's provider."""
    output_schema: dict[str, Any] | None = None
    stream: bool = True
    watched: bool = True
    """True when glimpses are shown to somebody; otherwise a model need not make any."""
    level: str | None = None
    """Which level of the turn asks; None: the root."""
    depth: int = 0
    frame: ProviderPromptFrame | None = None
    """The prompt before the conversation, block by block, with what caches may key on."""
    accepted_gap: frozenset[str] = frozenset()
    """Capabilities that the caller can do without: attachments that need one are named and left out."""
    accepted: Callable[[str], Awaitable[None]] | None = None
    """To be awaited by a model whose provider works at the request by itself, with the id its answer can be had under.

    It returns when the id is on disk; until then the model waits for nothing else.
    """


class Model(Protocol):
    """A model of a provider. Some can do more: `Reattachable`, `RefusingModel`, `Secretive`."""

    @property
    def ref(self) -> str:
        """`provider:model`."""
        ...

    def respond(self, request: ModelRequest) -> AsyncIterator[ModelGlimpse | Reply]:
        """Glimpses, then exactly one Reply, last. Raises ModelFailure; never a reply that may not be whole."""
        ...


class Pricing(Protocol):
    """The price of model requests. None means that the price is unknown, not that it is zero."""

    async def ready(self, models: "Sequence[Model]") -> None:
        """Told which models a turn may ask, before it asks one."""
        ...

    def estimate(
        self, model: Model, input_tokens: Callable[[], int], most_output: int, at: int, searches: int = 0
    ) -> "CostEstimated | None":
        """The most a request can cost. `input_tokens` is called only when the price is known.

        `searches`: so many searches of the provider's own are held for it.
        """
        ...

    def spent(
        self,
        model: Model,
        usage: TokenUsage | None,
        *,
        tier: str | None,
        at: int,
        attempt: int = 1,
        lost: bool = False,
        searches: int = 0,
    ) -> "CostRecorded | None":
        """The cost of an attempt that used these tokens (None: not counted), at a time in Unix microseconds.

        `searches`: so often the provider searched for the reply.
        """
        ...


@runtime_checkable
class Reattachable(Protocol):
    """A model whose provider may work at a request by itself (`ModelRequest.accepted`): a crash does not lose it."""

    def reattach(self, request: ModelRequest, response_id: str) -> AsyncIterator[ModelGlimpse | Reply]:
        """The answer of an accepted request, as `respond` gives it. Nothing is sent to be answered again.

        Raises ResponseGone when the provider does not have it.
        """
        ...

    async def abandon(self, response_id: str) -> None:
        """Tell the provider that nobody waits for the answer. Raises ModelFailure."""
        ...


class RefusingModel(Protocol):
    """A model that can say beforehand that a request cannot be made: then it is none, and not counted as one."""

    def refusal(self, settings: ModelSettings) -> ModelFailure | None:
        """Of kind `unsupported_transport`; None when the model can be asked."""
        ...


class RefusedAttachment(NamedTuple):
    """An attachment that a model cannot be shown."""

    capability: str
    """The capability it lacks, in the words of `accept_gap`: vision, files or audio."""
    why: str
    """Which attachment, which model, what it takes, and what to do."""


class Selective(Protocol):
    """A model that cannot be shown everything, and says so beforehand: then it is no candidate."""

    def untaken(self, part: Image | File) -> RefusedAttachment | None:
        """Why it cannot be shown a part; None when it can."""
        ...


@runtime_checkable
class Secretive(Protocol):
    """A model that knows which values must not stand in any message, such as its key."""

    def redacted(self, text: str) -> str:
        """The text without them."""
        ...
