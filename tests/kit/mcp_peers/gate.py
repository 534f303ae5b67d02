"""A server that needs a log-in, with the authorization server beside it, on this machine."""

import base64
import hashlib
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from wakeful.tools.mcp.oauth import BrowserGrant


class Gate:
    """A server that lets in who holds a token, and the authorization server that gives them."""

    def __init__(self, server: HTTPServer) -> None:
        self.base = server.url_for("").replace("localhost", "127.0.0.1").rstrip("/")
        self.url = f"{self.base}/mcp"
        self.codes: dict[str, dict[str, str]] = {}
        self.valid: set[str] = set()
        self.tokens_seen: list[str] = []
        self.grants: list[str] = []
        self.expires_in = 3600
        self.number = 0
        server.expect_request("/mcp").respond_with_handler(self.serve)
        server.expect_request("/.well-known/oauth-protected-resource/mcp").respond_with_json(
            {"resource": self.url, "authorization_servers": [self.base]}
        )
        server.expect_request("/.well-known/oauth-authorization-server").respond_with_json(
            {
                "issuer": self.base,
                "authorization_endpoint": f"{self.base}/authorize",
                "token_endpoint": f"{self.base}/odd-place/token",
                "registration_endpoint": f"{self.base}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }
        )
        server.expect_request("/register").respond_with_handler(self.register)
        server.expect_request("/odd-place/token").respond_with_handler(self.token)

    def authorize(self, url: str, *, granted: bool = True) -> BrowserGrant:
        """What a person and the browser would do."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert asked["resource"] == self.url
        if not granted:
            return BrowserGrant("", asked["state"])
        code = f"code-{len(self.codes)}-secret"
        self.codes[code] = asked
        return BrowserGrant(code, asked["state"])

    def register(self, request: Request) -> Response:
        made = {**json.loads(request.data), "client_id": "made-up", "client_secret": "client-secret"}
        made["token_endpoint_auth_method"] = "client_secret_post"
        return Response(json.dumps(made), status=201, content_type="application/json")

    def token(self, request: Request) -> Response:
        form = request.form
        self.grants.append(form["grant_type"])
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"])
            proof = (
                base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
            )
            assert proof == asked["code_challenge"]
        else:
            assert form["refresh_token"].startswith("refresh-secret-")
        self.number += 1
        token = f"access-secret-{self.number}"
        self.valid.add(token)
        given = {"access_token": token, "token_type": "Bearer", "expires_in": self.expires_in}
        given["refresh_token"] = f"refresh-secret-{self.number}"
        return Response(json.dumps(given), content_type="application/json")

    def serve(self, request: Request) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.valid:
            where = f'Bearer resource_metadata="{self.base}/.well-known/oauth-protected-resource/mcp"'
            return Response(status=401, headers={"www-authenticate": where})
        if request.method != "POST":
            return Response(status=405)
        body: dict[str, Any] = json.loads(request.data)
        if "id" not in body:
            return Response(status=202)
        result: dict[str, Any] = {}
        match body["method"]:
            case "initialize":
                info = {"name": "gate", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                reads = {"name": "whose", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
                result = {"tools": [reads]}
            case "tools/call":
                self.tokens_seen.append(token)
                result = {"content": [{"type": "text", "text": token}]}
        return Response(
            json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result}), content_type="application/json"
        )
