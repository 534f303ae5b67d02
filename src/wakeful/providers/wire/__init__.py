"""What the wire formats share: bytes to events, names, schemas, requests over HTTP, and what a failure means.

Nothing here knows one provider's request or reply; those are in the folder of their wire format. Only `http` needs the
HTTP library, and only once a request is made.
"""
