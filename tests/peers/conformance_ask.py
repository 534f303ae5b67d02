"""What the conformance suite starts as its client: passes the question on to the test, where wakeful is loaded already.

`conformance_ask.py SOCKET URL`; the scenario is in a variable. Ends with 0 when the client did what was asked.
"""

import json
import os
import socket
import sys

asked = {
    "url": sys.argv[2],
    "scenario": os.environ["MCP_CONFORMANCE_SCENARIO"],
    "context": json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"),
}
with socket.socket(socket.AF_UNIX) as test:
    test.connect(sys.argv[1])
    test.sendall(json.dumps(asked).encode() + b"\n")
    answer = test.makefile().readline()
sys.stderr.write(answer)
sys.exit(0 if answer == "fine\n" else 1)
