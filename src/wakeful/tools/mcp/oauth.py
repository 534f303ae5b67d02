"""OAuth for servers at a URL: tokens kept by server and principal, in a file that only its owner can read.

Tokens go to the server they are for and into that file, and nowhere else: no log line, no error, no event holds one.
Asking a person is a thing of its own (`Ask`): where nobody can be asked, a server that wants a login is not reached.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from wakeful.contracts.errors import WakefulError
from wakeful.tools.mcp.failures import NotReached
from wakeful.tools.mcp.files import locked, read_json, write_json
from wakeful.tools.mcp.http import FAILED
from wakeful.tools.mcp.servers import HttpServer

OWNER = "owner"
"""The principal of runs that act for nobody in particular."""


@dataclass(frozen=True, slots=True)
class BrowserGrant:
    """What the browser brought back."""

    code: str
    state: str | None = None
    issuer: str | None = None


Ask: TypeAlias = Callable[[str], Awaitable[BrowserGrant]]
"""Shows a person the address to go to, and waits for what the browser brings back."""


def token_file(folder: Path, server: HttpServer, principal: str) -> Path:
    """The file of one server and one principal; the principal may be any text, so it is no part of the name."""
    digest = hashlib.sha256(f"{server.url}\n{principal}".encode()).hexdigest()[:24]
    return folder / f"{server.name}-{digest}.json"


class TokenFile:
    """Where the SDK keeps what it was granted. Says for whom, never what, when it is printed."""

    def __init__(self, path: Path, server: HttpServer, principal: str) -> None:
        self._path = path
        self._server = server
        self._principal = principal
        self.provider: OAuthClientProvider | None = None

    def __repr__(self) -> str:
        return f"TokenFile({self._server.name!r}, {self._principal!r})"

    async def get_tokens(self) -> OAuthToken | None:
        kept = await asyncio.to_thread(read_json, self._path)
        try:
            tokens = OAuthToken.model_validate(kept["tokens"])
            metadata = OAuthMetadata.model_validate(kept["metadata"]) if kept.get("metadata") else None
        except (KeyError, ValidationError):
            return None
        if self.provider is not None:
            # The SDK forgets both with the process: when the token ends, and who can give a new one.
            self.provider.context.token_expiry_time = kept.get("expires_at")
            self.provider.context.oauth_metadata = metadata
        return tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        metadata = self.provider.context.oauth_metadata if self.provider is not None else None
        await self._change(
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            expires_at=time.time() + tokens.expires_in if tokens.expires_in is not None else None,
            metadata=metadata.model_dump(mode="json", exclude_none=True) if metadata is not None else None,
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        kept = await asyncio.to_thread(read_json, self._path)
        try:
            return OAuthClientInformationFull.model_validate(kept["client"])
        except (KeyError, ValidationError):
            return self._registered()

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await self._change(client=client_info.model_dump(mode="json", exclude_none=True))

    def _registered(self) -> OAuthClientInformationFull | None:
        """The client the owner registered beforehand, if any."""
        oauth = self._server.oauth
        if oauth is None or oauth.client_id is None:
            return None
        return OAuthClientInformationFull(
            client_id=oauth.client_id,
            client_secret=oauth.client_secret,
            redirect_uris=[AnyUrl(redirect_uri(self._server))],
            token_endpoint_auth_method="client_secret_basic" if oauth.client_secret else "none",
        )

    async def _change(self, **values: Any) -> None:
        def change() -> None:
            with locked(self._path):
                kept = read_json(self._path)
                kept |= {"server": self._server.where, "principal": self._principal, **values}
                write_json(self._path, kept)

        await asyncio.to_thread(change)


def redirect_uri(server: HttpServer) -> str:
    """Where the browser brings the answer."""
    assert server.oauth is not None
    return f"http://127.0.0.1:{server.oauth.redirect_port}/granted"


class Login(httpx2.Auth):
    """The SDK's login, whose failure is an answer to the request that needed it and leaves every other alone."""

    def __init__(self, server: HttpServer, principal: str, folder: Path, ask: Ask | None) -> None:
        self._made = partial(_provider, server, principal, folder, ask)
        self._provider = self._made()
        self._asks = ask is not None
        self._refused: str | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        words = self._refused
        if words is None:
            flow = self._provider.async_auth_flow(request)
            try:
                outgoing = await anext(flow)
                while True:
                    response = yield outgoing
                    outgoing = await flow.asend(response)
            except StopAsyncIteration:
                return
            except NotReached as problem:
                words = problem.message
            except WakefulError as problem:
                words = problem.message
            except (OAuthFlowError, ValidationError):
                words = "the login failed"
            finally:
                await flow.aclose()
            self._provider = self._made()  # somebody may log in meanwhile: the next request looks again
            if self._asks:
                self._refused = words  # a person who said no is not asked again
        yield httpx2.Request(request.method, request.url, extensions={FAILED: words})


def _provider(server: HttpServer, principal: str, folder: Path, ask: Ask | None) -> OAuthClientProvider:
    """The SDK's OAuth with our storage, and with a person only where one can be asked."""
    assert server.oauth is not None
    storage = TokenFile(token_file(folder, server, principal), server, principal)
    asked: list[str] = []

    async def show(url: str) -> None:
        if ask is None:
            raise NotReached(
                f"wakeful is not logged in there for {principal!r}: wakeful mcp login {server.name}"
                + ("" if principal == OWNER else f" --principal {principal}")
            )
        asked.append(url)

    async def brought_back() -> AuthorizationCodeResult:
        assert ask is not None
        granted = await ask(asked.pop())
        return AuthorizationCodeResult(code=granted.code, state=granted.state, iss=granted.issuer)

    provider = OAuthClientProvider(
        server.url,
        OAuthClientMetadata(
            client_name="wakeful",
            redirect_uris=[AnyUrl(redirect_uri(server))],
            scope=" ".join(server.oauth.scopes) or None,
        ),
        storage,
        redirect_handler=show,
        callback_handler=brought_back,
    )
    storage.provider = provider
    return provider
