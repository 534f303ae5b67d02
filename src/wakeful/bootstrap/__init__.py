"""Settings to a running system: the only room that names concrete classes."""
