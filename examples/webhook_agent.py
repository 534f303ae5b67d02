"""An always-on agent that is woken by a signed webhook: a CI reports a build, and the agent looks at it.

    python examples/webhook_agent.py            # prints the address for the CI, and waits for deliveries on port 8400
    python examples/webhook_agent.py rehearse   # plays three deliveries: a build, the same one again, a forged one

The CI signs each body with the secret in CI_SECRET (`X-Hub-Signature-256`, as GitHub does). For a real model put
`"anthropic:claude-haiku-4-5"` in the place of `scripted(...)`.
"""

import asyncio
import hashlib
import hmac
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from wakeful import Agent, Runtime
from wakeful.testing import scripted

HOME, ADDRESS = "ci-home", ("127.0.0.1", 8400)
WAKE = [{"trigger": "ci", "say": "A build reported in. Say what broke.", "signature": "hub_sha256",
         "signing_env": "CI_SECRET"}]  # fmt: skip
watcher = Agent("watcher", scripted(["Build 7 is red: the tests fail."]), "Watch over the builds.", wake=WAKE)


async def live() -> None:
    async with Runtime(HOME, agents=[watcher], public_url=f"http://{ADDRESS[0]}:{ADDRESS[1]}") as rt:
        loop = asyncio.get_running_loop()

        class Front(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 300_000))
                came = asyncio.run_coroutine_threadsafe(rt.deliver(self.path, body, dict(self.headers)), loop)
                self.send_response(403 if came.result().outcome == "refused" else 202)
                self.end_headers()

        print(await rt.trigger_url("watcher/ci"), flush=True)
        await asyncio.to_thread(HTTPServer(ADDRESS, Front).serve_forever)


async def rehearse() -> None:
    os.environ["CI_SECRET"] = "only for the rehearsal"
    body = b'{"build": 7, "ok": false}'
    code = hmac.new(b"only for the rehearsal", body, hashlib.sha256).hexdigest()
    signed = {"Content-Type": "application/json", "X-Hub-Signature-256": f"sha256={code}"}
    async with Runtime(HOME, agents=[watcher]) as rt:
        url = await rt.trigger_url("watcher/ci")
        receipts = [await rt.deliver(url, sent, signed) for sent in (body, body, body.replace(b"7", b"8"))]
        for came in receipts:
            print(came.outcome, came.reason or "")
        print((await rt.answer(receipts[0])).output)


if __name__ == "__main__":
    asyncio.run(rehearse() if "rehearse" in sys.argv[1:] else live())
