"""Messages of other libraries and wire formats, read into conversation items.

Here lives one reader a format. None of them imports the library it reads: a message is known by its shape or by its
class's module. Not here: how a request is written for a provider (`providers`).
"""
