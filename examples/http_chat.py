"""Chat with an agent of the daemon over plain HTTP: `python http_chat.py AGENT TEXT`.

It reads the stream of its turn, asks you about approvals, runs the tool `pick_file` for the agent, and comes back where
it was when the connection breaks. Nothing but the standard library is needed.
"""

import http.client
import json
import subprocess
import sys
import time
import uuid
from socket import AF_UNIX, SOCK_STREAM, socket
from typing import Any

STATUS = ["wakeful", "daemon", "status", "--json"]
PLACE = json.loads(subprocess.run(STATUS, stdout=subprocess.PIPE, check=True).stdout)["socket_path"]


def ask(path: str, body: Any, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket(AF_UNIX, SOCK_STREAM)
    connection.sock.connect(PLACE)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json", **headers})
    answer = connection.getresponse()
    if answer.status >= 400:
        sys.exit(answer.read().decode())
    return answer


def take(message: dict[str, Any]) -> bool:
    """Show one message of the stream, or do what it asks for. True: it was the last one."""
    kind = message.get("type")
    if kind == "chunk":
        print(message["content"], end="\n" if message["done"] else "", flush=True)
    elif kind == "tool_call_update":
        print(f"  {message['status']} {message['name']} {message.get('args') or message.get('result', '')}")
    elif kind == "approval_required":
        said = input(f"  {message['prompt']} [y/n] ")
        decision = {"decision": "approved" if said == "y" else "rejected"}
        ask(f"/approvals/{message['approval_id']}/decision", decision)
    elif kind == "client_tool_call" and message["name"] == "pick_file":
        ask(f"/requests/{message['request_id']}/result", {"result": {"file": "notes.txt"}})
    return bool(kind == "turn_terminal")


def chat(agent: str, text: str) -> None:
    words, last, is_over = {"text": text, "key": str(uuid.uuid4())}, "0", False
    while not is_over:
        try:
            for line in ask(f"/agents/{agent}/chat", words, **{"Last-Event-ID": last}):
                name, _, value = line.decode().rstrip("\n").partition(": ")
                last = value if name == "id" else last
                is_over = is_over or (name == "data" and take(json.loads(value)))
        except (OSError, http.client.HTTPException):
            time.sleep(1)  # the daemon is away; the key and the last id are all that is needed


chat(sys.argv[1], sys.argv[2])
