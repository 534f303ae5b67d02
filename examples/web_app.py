"""A web app: users chat with an agent, and a colleague approves refunds by HTTP. Needs `pip install fastapi uvicorn`.

    uvicorn --app-dir examples web_app:app --workers 2
    curl -X POST 'localhost:8000/chat/mia?message_id=1&text=Order+A17+arrived+broken.'
    curl localhost:8000/approvals
    curl -X POST 'localhost:8000/approvals/ID/approve?by=ann'
    curl -X POST 'localhost:8000/chat/mia?message_id=1&text=Order+A17+arrived+broken.'   # again: the answer

Stop and start it at any time: the runs are in the store.
"""

import os
from typing import Any

from fastapi import FastAPI, HTTPException

from wakeful import Agent, Approve, open_store, run, tool
from wakeful.errors import AlreadyDecided, ApprovalNotFound
from wakeful.providers import ModelRequest
from wakeful.testing import scripted

STORE = os.environ.get("SHOP_STORE", "shop.db")


@tool(effect="keyed", approval=True)
def refund(order: str, cents: int) -> str:
    """Give the customer the money back."""
    return f"refunded {cents} for {order}"


def clerk(request: ModelRequest) -> object:  # stands for a model
    if request.answered == 0:
        return {"calls": [{"name": "refund", "arguments": {"order": "A17", "cents": 4200}}]}
    return "Your refund is on its way."


agent = Agent("clerk", scripted(clerk), "Refund broken orders.", tools=[refund])
app = FastAPI()


@app.post("/chat/{user}")
async def chat(user: str, message_id: str, text: str) -> dict[str, Any]:
    result = await run(agent, text, store=STORE, thread=user, key=f"{user}-{message_id}")
    return {"status": result.status, "text": result.final_content}


@app.get("/approvals")
async def approvals() -> list[dict[str, Any]]:
    async with open_store(STORE) as store:
        return [{"id": a.approval_id, "tool": a.tool, "arguments": a.arguments} for a in await store.approvals()]


@app.post("/approvals/{approval_id}/approve")
async def approve(approval_id: str, by: str) -> dict[str, Any]:
    try:
        async with open_store(STORE) as store:
            return {"status": (await store.decide(approval_id, Approve(), by=by)).status}
    except (AlreadyDecided, ApprovalNotFound) as error:
        raise HTTPException(409 if isinstance(error, AlreadyDecided) else 404, error.message) from None
